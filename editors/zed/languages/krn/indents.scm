[
  (const_item)
  (static_item)
  (results)
  (facts)
] @indent

; A value that goes on in the next line; a block indents its own lines.
(let_declaration
  value: [
    (array_expression) (binary_expression) (boolean_literal) (call_expression) (cast_expression) (field_expression)
    (float_literal) (guarded_expression) (identifier) (index_expression) (integer_literal) (parenthesized_expression)
    (reduction) (struct_expression) (unary_expression)
  ]) @indent
(assignment
  right: [
    (array_expression) (binary_expression) (boolean_literal) (call_expression) (cast_expression) (field_expression)
    (float_literal) (guarded_expression) (identifier) (index_expression) (integer_literal) (parenthesized_expression)
    (reduction) (struct_expression) (unary_expression)
  ]) @indent

(_ "{" "}" @end) @indent
(_ "[" "]" @end) @indent
(_ "(" ")" @end) @indent
