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
  (kernel_item)
  (function_item)
  (let_declaration)
  (assignment)
  (const_item)
  (static_item)
] @indent.begin

[")" "]" "}"] @indent.branch
[")" "]" "}"] @indent.end

(block_comment) @indent.auto
(ERROR) @indent.auto
