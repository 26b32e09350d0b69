[
  (block)
  (field_declarations)
  (directives)
  (parameters)
  (arguments)
  (field_initializers)
  (array_expression)
  (block_comment)
] @fold

(line_comment)+ @fold
