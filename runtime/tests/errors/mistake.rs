//! Mistakes in the kernels' file are told with its lines; one that is not there with where it was looked for.

krn_runtime::kernels!("mistake.krn");
krn_runtime::kernels!("../typed.krn", sizes = { no_such: 4 });

fn main() {}
