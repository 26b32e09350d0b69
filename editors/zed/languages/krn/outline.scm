(kernel_item "kernel" @context name: (identifier) @name) @item
(function_item "fn" @context name: (identifier) @name) @item
(reduction_item "reduction" @context name: (identifier) @name) @item
(struct_item "struct" @context name: (type_identifier) @name) @item
(const_item "const" @context name: (identifier) @name) @item
(static_item "static" @context name: (identifier) @name) @item
(schedule_item "schedule" @context kernel: (identifier) @name) @item
