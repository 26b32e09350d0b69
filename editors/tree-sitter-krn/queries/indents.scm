; For nvim-treesitter.

[
  (block)
  (field_declarations)
  (directives)
  (parameters)
  (arguments)
  (subscripts)
  (extents)
  (field_initializers)
  (array_expression)
  (parenthesized_expression)
  (reduction)
  (const_item)
  (static_item)
] @indent.begin

; A value that goes on in the next line; a block indents its own lines.
(let_declaration
  value: [
    (array_expression) (binary_expression) (boolean_literal) (call_expression) (cast_expression) (field_expression)
    (float_literal) (guarded_expression) (identifier) (index_expression) (integer_literal) (parenthesized_expression)
    (reduction) (struct_expression) (unary_expression)
  ]) @indent.begin
(assignment
  right: [
    (array_expression) (binary_expression) (boolean_literal) (call_expression) (cast_expression) (field_expression)
    (float_literal) (guarded_expression) (identifier) (index_expression) (integer_literal) (parenthesized_expression)
    (reduction) (struct_expression) (unary_expression)
  ]) @indent.begin

; Of a header that takes several lines.
((results) @indent.begin
  (#set! indent.immediate 1)
  (#set! indent.start_at_same_line 1))
((facts) @indent.begin
  (#set! indent.immediate 1)
  (#set! indent.start_at_same_line 1))

[")" "]" "}"] @indent.branch
[")" "]" "}"] @indent.end

(block_comment) @indent.auto
(ERROR) @indent.auto
