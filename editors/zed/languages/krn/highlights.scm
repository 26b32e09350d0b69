; The captures are Zed's; no node has two, so it does not matter which pattern counts.

[(line_comment) (block_comment)] @comment

["kernel" "fn" "reduction"] @keyword
"struct" @keyword
["const" "static" "inout"] @keyword
["let" "var" "where" "schedule" "assert" "print"] @keyword
["as" "in"] @keyword
["if" "else"] @keyword
(forall_statement "forall" @keyword)
(for_statement ["for" "step"] @keyword)
(while_statement "while" @keyword)
(break_statement) @keyword
(schedule_item "for" @keyword)
(reduction_item "from" @keyword)

(integer_literal) @number
(float_literal) @number
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
  function: (identifier) @function
  (#not-any-of? @function
    "exp" "exp2" "exp10" "expm1" "log" "log2" "log10" "log1p" "sin" "cos" "tan" "sinpi" "cospi" "asin" "acos" "atan"
    "atan2" "sinh" "cosh" "tanh" "pow" "erf" "rsqrt" "cbrt" "hypot" "sqrt" "fma" "floor" "ceil" "round" "trunc"
    "copysign" "isnan" "isinf" "isfinite" "abs" "sign" "min" "max" "clamp" "select" "popcount" "leading_zeros"
    "trailing_zeros" "to_bits" "from_bits" "rand" "rand_normal" "rand_u32" "injective"))

(parameter name: (identifier) @variable.parameter)
(result name: (identifier) @variable.parameter)
(const_item name: (identifier) @constant)
(field_identifier) @property

(schedule_item target: (identifier) @constant)
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
