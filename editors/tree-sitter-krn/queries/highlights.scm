; The captures are Neovim's; no node has two, so it does not matter which pattern counts.

[(line_comment) (block_comment)] @comment

["kernel" "fn" "reduction"] @keyword.function
"struct" @keyword.type
["const" "static" "inout"] @keyword.modifier
["let" "var" "where" "schedule" "assert" "print"] @keyword
["as" "in"] @keyword.operator
["if" "else"] @keyword.conditional
(forall_statement "forall" @keyword.repeat)
(for_statement ["for" "step"] @keyword.repeat)
(while_statement "while" @keyword.repeat)
(break_statement) @keyword.repeat
(schedule_item "for" @keyword)

(integer_literal) @number
(float_literal) @number.float
(boolean_literal) @boolean

((type_identifier) @type.builtin
  (#any-of? @type.builtin
    "bool" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "f16" "bf16" "f32" "f64"))
((type_identifier) @type
  (#not-any-of? @type
    "bool" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "f16" "bf16" "f32" "f64"))

(kernel_item name: (identifier) @function)
(function_item name: (identifier) @function)
(reduction_item name: (identifier) @function)
(reduction_item "from" @keyword)
(schedule_item kernel: (identifier) @function)
(reduction_operator) @function.builtin
(call_expression
  function: (identifier) @function.builtin
  (#any-of? @function.builtin
    "exp" "exp2" "exp10" "expm1" "log" "log2" "log10" "log1p" "sin" "cos" "tan" "sinpi" "cospi" "asin" "acos" "atan"
    "atan2" "sinh" "cosh" "tanh" "pow" "erf" "rsqrt" "cbrt" "hypot" "sqrt" "fma" "floor" "ceil" "round" "trunc"
    "copysign" "isnan" "isinf" "isfinite" "abs" "sign" "min" "max" "clamp" "select" "popcount" "leading_zeros"
    "trailing_zeros" "to_bits" "from_bits" "rand" "rand_normal" "rand_u32" "injective"))
(call_expression
  function: (identifier) @function.call
  (#not-any-of? @function.call
    "exp" "exp2" "exp10" "expm1" "log" "log2" "log10" "log1p" "sin" "cos" "tan" "sinpi" "cospi" "asin" "acos" "atan"
    "atan2" "sinh" "cosh" "tanh" "pow" "erf" "rsqrt" "cbrt" "hypot" "sqrt" "fma" "floor" "ceil" "round" "trunc"
    "copysign" "isnan" "isinf" "isfinite" "abs" "sign" "min" "max" "clamp" "select" "popcount" "leading_zeros"
    "trailing_zeros" "to_bits" "from_bits" "rand" "rand_normal" "rand_u32" "injective"))

(parameter name: (identifier) @variable.parameter)
(result name: (identifier) @variable.parameter)
(const_item name: (identifier) @constant)
(field_identifier) @variable.member

(schedule_item target: (identifier) @constant.builtin)
(directive name: (identifier) @attribute)
(modifier name: (identifier) @attribute)
(directive_call name: (identifier) @attribute)

[
  "+" "-" "*" "/" "%" "<<" ">>" "&" "|" "^" "&&" "||" "==" "!=" "<" "<=" ">" ">=" "!"
  "=" "+=" "-=" "*=" "/=" "%=" "<<=" ">>=" "min=" "max=" "&=" "|=" "^="
  ".." "..=" "->"
] @operator

["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter
