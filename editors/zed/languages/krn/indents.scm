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
  (let_declaration)
  (assignment)
  (const_item)
] @indent

(_ "{" "}" @end) @indent
(_ "[" "]" @end) @indent
(_ "(" ")" @end) @indent
