//! The values of scalar parameters that `set` directives give.

use super::super::fill::encode;
use super::directives::Directives;
use super::expression;
use crate::launch::binding::decode;
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, KernelManifest, Value};
use std::collections::BTreeMap;

/// The scalar parameters that `set` gives in a run; `names` are the dimensions of the run.
///
/// # Errors
/// A parameter that the kernel does not have, or a number that cannot be worked out.
pub fn set_params(
    manifest: &KernelManifest,
    directives: &Directives,
    run: usize,
    names: &dyn Fn(&str) -> Option<i128>,
) -> Result<BTreeMap<String, HostArray>, String> {
    let mut params: BTreeMap<String, HostArray> = BTreeMap::new();
    for (target, list) in &directives.set {
        let (name, path) = target.split_once('.').unwrap_or((target, ""));
        let element = manifest.arguments.iter().find_map(|argument| match &argument.kind {
            ArgumentKind::Value { element } if argument.name == name => Some(element),
            _ => None,
        });
        let element = element.ok_or_else(|| format!("there is no scalar parameter `{name}`"))?;
        let leaf = element.leaves.iter().find(|leaf| leaf.path == path && leaf.extents.is_empty());
        let leaf = leaf.ok_or_else(|| format!("`{name}` has no field `{path}`"))?;
        let text = &list[run % list.len()];
        if !params.contains_key(name) {
            let blank = HostArray::zeros(element.clone(), Vec::new()).ok_or("too large")?;
            params.insert(name.to_string(), blank);
        }
        if let Some(slot) = params.get_mut(name) {
            let bytes = &mut slot.bytes[leaf.offset as usize..];
            match text.as_str() {
                "true" => encode(leaf.scalar, 1.0, bytes),
                "false" => encode(leaf.scalar, 0.0, bytes),
                text if leaf.scalar.is_integer() => {
                    let value = expression::integer(text, names)?;
                    let size = leaf.scalar.size() as usize;
                    bytes[..size].copy_from_slice(&value.to_le_bytes()[..size]);
                    if decode(leaf.scalar, &bytes[..size]) != Value::Int(value) {
                        return Err(format!(
                            "`{text}` is no value of `{target}`, which is of type {}",
                            leaf.scalar
                        ));
                    }
                }
                text => encode(leaf.scalar, expression::number(text, names)?, bytes),
            }
        }
    }
    Ok(params)
}
