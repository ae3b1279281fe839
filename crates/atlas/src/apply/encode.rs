//! The form of field sets in `managedFields`: a tree of objects, `FieldsV1`.

use windlass_core::{DEPTH_LIMIT, Doc, Object, Str};

use super::element::{PathElement, Scalar};
use super::set::FieldSet;

/// The key that says that the object it is in is itself a member.
pub(super) const SELF: &str = ".";

/// A tree is not a field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid fieldsV1: {0}")]
pub struct FieldsError(String);

impl FieldSet {
    /// The set as `FieldsV1`.
    #[must_use]
    pub fn encode(&self) -> Doc {
        encode_steps(self).into()
    }

    /// Reads `FieldsV1`.
    pub fn decode(tree: &Doc) -> Result<Self, FieldsError> {
        decode_level(tree, DEPTH_LIMIT).map(|(set, _)| set)
    }
}

/// The set as it stands below a node.
pub(super) fn encode_steps(set: &FieldSet) -> Object {
    let fields = set.steps().map(|(step, is_member, child)| {
        let below = child.map_or_else(Object::empty, encode_steps);
        (encode_step(step), joined(below, is_member).into())
    });
    Object::new(fields.collect())
}

/// A node with what is below it, which says whether it is a member itself.
pub(super) fn joined(below: Object, is_member: bool) -> Object {
    match is_member && !below.is_empty() {
        true => below.with(SELF, Doc::empty_object()),
        false => below,
    }
}

/// The set below a node, and whether the node itself is a member.
fn decode_level(tree: &Doc, depth: usize) -> Result<(FieldSet, bool), FieldsError> {
    let Some(object) = tree.as_object() else {
        return Err(FieldsError(format!("{tree} is not an object")));
    };
    let depth = depth
        .checked_sub(1)
        .ok_or_else(|| FieldsError("nested too deep".to_owned()))?;
    let (mut set, mut is_member) = (FieldSet::new(), object.is_empty());
    for (key, value) in object.iter() {
        if key == SELF {
            is_member = true;
            continue;
        }
        let Some(step) = decode_step(key)? else {
            continue;
        };
        let (child, is_child_member) = decode_level(value, depth)?;
        if is_child_member {
            set.members.insert(step.clone());
        }
        if !child.is_empty() {
            set.children.insert(step, child);
        }
    }
    Ok((set, is_member))
}

pub(super) fn encode_step(step: &PathElement) -> Str {
    let text = match step {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(fields) => {
            let object: Object = fields
                .iter()
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .collect();
            format!("k:{}", escaped(&object.into()))
        }
        PathElement::Value(value) => format!("v:{}", escaped(&value.0)),
        PathElement::Index(index) => format!("i:{index}"),
    };
    Str::new(&text)
}

/// JSON with the characters escaped that upstream's encoder takes for dangerous in HTML.
pub(super) fn escaped(doc: &Doc) -> String {
    let mut out = String::new();
    for c in doc.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out
}

/// The step that a key stands for; `None` for a sort of step of some later version.
fn decode_step(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let fault = || FieldsError(format!("{key:?} is not a path element"));
    let (sort, rest) = key.split_once(':').ok_or_else(fault)?;
    let json = || Doc::parse(rest.as_bytes()).map_err(|_| fault());
    Ok(Some(match sort {
        "f" => PathElement::Field(Str::new(rest)),
        "v" => PathElement::Value(Scalar(json()?)),
        "i" => PathElement::Index(rest.parse().map_err(|_| fault())?),
        "k" => {
            let json = json()?;
            let fields = json.as_object().ok_or_else(fault)?.iter();
            let fields = fields.map(|(name, value)| (name.clone(), Scalar(value.clone())));
            PathElement::Key(fields.collect())
        }
        _ if sort.len() == 1 => return Ok(None),
        _ => return Err(fault()),
    }))
}
