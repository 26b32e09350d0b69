(kernel_item body: (block) @function.inside) @function.around
(function_item body: (block) @function.inside) @function.around
(reduction_item body: (block) @function.inside) @function.around
(struct_item body: (field_declarations) @class.inside) @class.around
(parameter) @parameter.inside
[(line_comment) (block_comment)] @comment.inside
(line_comment)+ @comment.around
