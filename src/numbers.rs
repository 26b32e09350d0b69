//! Numbers and assignments from the command line, and numbers for people.

use krn_compiler::data::{ElementType, HostArray, Scalar};
pub use krn_runtime::grouped;
use std::time::Duration;

/// Splits `name=value`.
pub fn assignment(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.trim(), value.trim())),
        _ => Err(format!("`{text}` is not of the form name=value")),
    }
}

/// Writes a scalar into a value's bytes: `path` names the field (empty for a plain scalar).
pub fn set_scalar(value: &mut HostArray, path: &str, text: &str) -> Result<(), String> {
    let leaf = value.element.leaves.iter().find(|leaf| leaf.path == path && leaf.extents.is_empty());
    let Some(leaf) = leaf else {
        let known: Vec<&str> = value.element.leaves.iter().map(|leaf| leaf.path.as_str()).collect();
        return Err(format!("`{}` has no field `{path}`; it has {}", value.element.name, known.join(", ")));
    };
    let bytes = parse_scalar(leaf.scalar, text)?;
    let at = leaf.offset as usize;
    value.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
    Ok(())
}

/// A rank-0 array of zeros of the type.
pub fn blank(element: &ElementType) -> HostArray {
    HostArray { element: element.clone(), shape: Vec::new(), bytes: vec![0; element.size as usize] }
}

fn parse_scalar(scalar: Scalar, text: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("`{text}` is not a value of type `{scalar}`");
    let clean = text.replace('_', "");
    if scalar == Scalar::Bool {
        return match clean.as_str() {
            "true" | "1" => Ok(vec![1]),
            "false" | "0" => Ok(vec![0]),
            _ => Err(bad()),
        };
    }
    if scalar.is_float() {
        return Ok(match scalar {
            Scalar::F64 => clean.parse::<f64>().map_err(|_| bad())?.to_le_bytes().to_vec(),
            Scalar::F32 => clean.parse::<f32>().map_err(|_| bad())?.to_le_bytes().to_vec(),
            Scalar::F16 => {
                krn_compiler::data::f16_from_f64(clean.parse().map_err(|_| bad())?).to_le_bytes().to_vec()
            }
            _ => krn_compiler::data::bf16_from_f64(clean.parse().map_err(|_| bad())?).to_le_bytes().to_vec(),
        });
    }
    let value: i128 = match clean.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).map_err(|_| bad())?,
        None => clean.parse().map_err(|_| bad())?,
    };
    let bits = scalar.size() as u32 * 8;
    let (low, high) = if scalar.is_signed_integer() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    if value < low || value > high {
        return Err(format!("{value} is outside the range of `{scalar}` ({low} to {high})"));
    }
    Ok(value.to_le_bytes()[..scalar.size() as usize].to_vec())
}

/// `1.23 ms`
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// `12.3 MiB`
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// `1 kernel`, `2 kernels`
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_parsed_and_range_checked() {
        let mut value = blank(&ElementType::scalar(Scalar::I8));
        assert_eq!(set_scalar(&mut value, "", "-128"), Ok(()));
        assert_eq!(value.bytes, [0x80]);
        assert!(set_scalar(&mut value, "", "128").expect_err("out of range").contains("-128 to 127"));
        assert!(set_scalar(&mut value, "", "1.5").is_err());
        assert!(set_scalar(&mut value, "x", "1").is_err());
        assert!(assignment("n=").is_err());
        assert_eq!(assignment("n=3"), Ok(("n", "3")));
        assert_eq!(grouped(1234567), "1,234,567");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!((counted(1, "run"), counted(0, "run")), ("1 run".to_string(), "0 runs".to_string()));
    }
}
