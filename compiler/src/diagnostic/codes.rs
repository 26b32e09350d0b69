//! Every diagnostic code, its one-line title, and its page. Grouped by the room that reports it; whoever
//! adds a code adds its page `docs/errors/CODE.md` and a snapshot test beside it.
//!
//! Ranges: E00xx text and syntax · E01xx names · E02xx types · E03xx shapes, ranges and indices ·
//! E04xx bounds, races and coverage · E05xx schedules · E06xx limits of the target · E07xx test directives ·
//! W0xxx warnings, of which W06xx are about speed.

use super::code::Code;

macro_rules! codes {
    ($($code:ident $title:literal;)*) => {
        $(#[doc = $title] pub const $code: Code = Code(stringify!($code));)*

        /// Every code with its title and its page, in the order of the table.
        pub const ALL: &[(Code, &str, &str)] = &[
            $(($code, $title, include_str!(concat!("../../../docs/errors/", stringify!($code), ".md"))),)*
        ];
    };
}

codes! {
    // E00xx text and syntax
    E0001 "a character that the language does not use";
    E0002 "a name with letters outside ASCII";
    E0003 "a file that is not UTF-8";
    E0004 "a comment that is never closed";
    E0005 "a malformed number";
    E0006 "an integer too large for any type";
    E0007 "a number too large for any type";
    E0008 "an unknown suffix on a number";
    E0009 "a closing bracket that closes nothing";
    E0010 "a bracket that is never closed";
    E0011 "unexpected text";
    E0012 "text outside of any item";
    E0013 "an expression or nesting that is too deep";
    E0014 "an assignment to something that cannot be assigned to";
    E0015 "a value that nothing takes";
    E0016 "chained comparisons";
    E0017 "a reserved word as a name";
    E0018 "an `else` value on something other than an element";
    E0019 "an array type without extents";
    E0020 "a name without a type";
    E0021 "a result without a name";
    E0022 "a function without a result type";
    E0023 "an item inside of an item";
    E0024 "a `let` without a value";
    E0025 "a name that is too long";
    E0026 "a reduction that does not say what it starts from";

    // E01xx names
    E0101 "an unknown name";
    E0102 "an unknown type";
    E0103 "an unknown function";
    E0104 "a reduction without index names";
    E0105 "two items of one name";
    E0106 "a name given twice in one list";
    E0107 "a struct that contains itself";
    E0108 "a function that calls itself";
    E0109 "an index name that is taken";
    E0110 "something that is not a type";
    E0111 "a name that is not a value";
    E0112 "a `let` that hides an index, a dimension or an array";
    E0113 "a name that the language takes";
    E0114 "a constant used before its definition";
    E0115 "a dimension that no parameter binds";
    E0116 "a function in the place of a reduction";

    // E02xx types
    E0201 "a value of the wrong type";
    E0202 "an integer is needed";
    E0203 "a literal that does not fit its type";
    E0204 "a sign on the wrong type";
    E0205 "operands of two types";
    E0206 "an operator that the type does not have";
    E0207 "a conversion that does not exist";
    E0208 "the wrong number of arguments";
    E0209 "a condition that is not `bool`";
    E0210 "arguments of different types";
    E0211 "an argument of a type that the function does not take";
    E0212 "an assignment to something that does not change";
    E0213 "an input that is written";
    E0214 "an operator that cannot combine into an array";
    E0215 "a combining assignment that the type does not have";
    E0216 "a block without a value";
    E0217 "a reduction that the type does not have";
    E0218 "an array where only a value can stand";
    E0219 "something that must be known at compile time";
    E0220 "an array literal of the wrong size";
    E0221 "an array used as a value";
    E0222 "a fixed array of a wrong size";
    E0223 "a struct literal with missing fields";
    E0224 "an unknown field";
    E0226 "a struct that is too large";
    E0227 "a constant or static that is too large";
    E0228 "a static outside of a kernel's body";
    E0229 "branches of different types";
    E0230 "an argument that is no array of the parameter's type";
    E0231 "a field of something that is no struct";
    E0232 "a reduction that does not take two of what it gives";
    E0233 "code that a reduction cannot have";
    E0234 "a reduction of too many values";
    E0235 "a `print` of too many values";
    E0236 "a `print` that changes something";

    // E03xx shapes, ranges and indices
    E0302 "ranges that disagree";
    E0303 "a range that cannot be inferred";
    E0304 "an unbound name inside an expression on the left";
    E0305 "a shape that the host cannot compute";
    E0306 "a fact that the host cannot check";
    E0308 "a launch whose size depends on device data";
    E0309 "a step that is not a constant other than 0";
    E0310 "a local array that does not start at 0";
    E0311 "a bound that is too long for the host";
    E0312 "a local array whose size changes from iteration to iteration";
    E0313 "a variable that unordered iterations would change";
    E0314 "a position in ranges that are no box";
    E0315 "a statement that cannot stand where a value is computed";
    E0316 "a fact about the values of something other than an array of integers";
    E0317 "a range of values that cannot be inferred";
    E0318 "a negative extent";
    E0320 "an array without subscripts";
    E0321 "the wrong number of subscripts";
    E0322 "a subscript on something that is no array";
    E0323 "a subscript outside of a fixed array";
    E0324 "a `break` that ends no loop";
    E0325 "an array given to a function that wants another shape";

    // E04xx bounds, races and coverage
    E0401 "a subscript that is always outside";
    E0402 "a subscript into a fixed array that is always outside";
    E0403 "an element that is written more than once";
    E0404 "`=` at subscripts that come from data";
    E0405 "an iteration that reads what another one writes";
    E0406 "two stores that may write one element";
    E0407 "an iteration that reads what others combine into";
    E0408 "an iteration that writes what others combine into";
    E0409 "two combining operators in no certain order";
    E0410 "a fact that can never hold";
    E0411 "a result that is read before it is written";
    E0412 "a result without a value to start from";
    E0413 "one value that every iteration writes";
    E0414 "a result that is never written";

    // E05xx schedules
    E0501 "a schedule for no kernel";
    E0502 "an unknown target";
    E0503 "two schedules for one target";
    E0504 "an unknown directive";
    E0505 "a directive that is not yet supported";
    E0506 "a directive given twice";
    E0507 "a size that makes no sense";
    E0508 "a malformed directive";
    E0509 "a schedule that names nothing of the kernel";
    E0510 "a layout for an array without structs";
    E0511 "a read-only path for an array that is written";
    E0512 "a directive for which the kernel has no place";
    E0513 "a vector of more than 16 bytes";
    E0514 "an atomic for an array into which no reduction goes";
    E0515 "a schedule with too many threads a block";
    E0516 "a schedule with too much shared memory";
    E0517 "directives that contradict each other";
    E0518 "a level for a warning that does not exist";
    E0519 "a directive in the schedule of the whole file";
    E0520 "a condition of a schedule that the host does not know";
    E0521 "a directive that cannot depend on sizes";
    E0522 "a schedule for sizes that are not found";

    // E06xx limits
    E0601 "a value that the host must know before the launch cannot be evaluated there";
    E0602 "a local array needs memory that cannot be sized before the launch";
    E0603 "too much code after inlining";
    E0604 "calls that nest too deeply after inlining";

    // E07xx test directives, which the runtime reads
    E0701 "a malformed test directive";

    // W0xxx warnings
    W0101 "a name that is never used";
    W0102 "a parameter that is never used";
    W0201 "an integer division by zero";
    W0202 "a shift by more than the width";
    W0301 "a range that is always empty";
    W0302 "a constant array beyond constant memory";
    W0401 "a result that is not proved to be written everywhere";
    W0501 "a block of broken warps";
    W0601 "threads of a warp far apart in memory";
    W0602 "requests that start inside a sector";
    W0603 "structs of which fields are fetched and not used";
    W0604 "lanes that wait for one bank of shared memory";
    W0605 "arrays of a thread that lie in memory";
    W0606 "values for which the registers are not enough";
    W0607 "lanes of a warp that part";
    W0608 "too few blocks for the GPU";
    W0609 "too few warps on a multiprocessor";
    W0610 "indices divided in 64 bits";
    W0611 "neighbours that no vector brings";
    W0612 "floats that one thread adds up in order";
}
