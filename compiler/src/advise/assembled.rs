//! What NVIDIA's assembler says of a kernel's entries: registers, spills, arrays that it leaves in memory.

use std::collections::BTreeMap;

/// What one entry takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Of one thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Bytes of a thread's registers that are stored to memory and loaded again, stores and loads together.
    pub spill_bytes: u32,
    /// Of `spill_bytes`, the stores.
    pub spill_store_bytes: u32,
    /// Bytes of a thread's local memory: spilled registers, and arrays that are not in registers.
    pub stack_bytes: u32,
}

/// Entries by name.
pub type Usages = BTreeMap<String, Usage>;

impl Usage {
    /// Bytes of arrays in local memory, at least. Room for spills is shared by what is not needed at the same time, so that no
    /// more of it can be used than is stored.
    pub fn array_bytes(&self) -> u32 {
        self.stack_bytes.saturating_sub(self.spill_store_bytes)
    }
}

/// Reads what `ptxas -v` prints.
pub fn read_log(log: &str) -> Usages {
    let mut entries = Usages::new();
    let mut current: Option<&mut Usage> = None;
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or(rest);
            current = Some(entries.entry(name.to_string()).or_default());
        }
        let Some(usage) = &mut current else { continue };
        let line = line.split_once("info    :").map_or(line, |(_, rest)| rest);
        for part in line.split(',') {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some(count) = words.iter().find_map(|word| word.parse::<u32>().ok()) else { continue };
            match words.as_slice() {
                ["Used", _, "registers"] => usage.registers = count,
                [_, "bytes", "smem"] => usage.shared_bytes = count,
                [_, "bytes", "stack", "frame"] => usage.stack_bytes = count,
                [_, "bytes", "spill", "stores"] => {
                    usage.spill_store_bytes = count;
                    usage.spill_bytes = usage.spill_bytes.saturating_add(count);
                }
                [_, "bytes", "spill", "loads"] => usage.spill_bytes = usage.spill_bytes.saturating_add(count),
                _ => {}
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_by_entry() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'sum_pieces' for 'sm_90'\n\
                   ptxas info    : Function properties for sum_pieces\n    \
                   72 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n\
                   ptxas info    : Used 36 registers, used 1 barriers, 32 bytes smem, 360 bytes cmem[0]\n\
                   ptxas info    : Compile time = 74.902 ms\n\
                   ptxas info    : Compiling entry function 'sum' for 'sm_90'\n    \
                   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 24 registers, used 0 barriers\n";
        let pieces = Usage {
            registers: 36,
            shared_bytes: 32,
            spill_bytes: 28,
            spill_store_bytes: 12,
            stack_bytes: 72,
        };
        let sum = Usage { registers: 24, ..Usage::default() };
        assert_eq!(pieces.array_bytes(), 60);
        assert_eq!(
            read_log(log),
            Usages::from([("sum".to_string(), sum), ("sum_pieces".to_string(), pieces)])
        );
    }
}
