//! The rule: a pointer is a chain of fields that exists in the type graph.

use windlass_atlas::{Atlas, Shape, Type};

/// Returns true if the pointer leads from an object of one of the types, or a list of such objects,
/// through fields that exist. Behind a list stands an index, behind a map any key.
pub(crate) fn exists(pointer: &str, types: &[&Type]) -> bool {
    let segments: Vec<&str> = pointer.split('/').skip(1).collect();
    // A pointer into a list of objects, such as `/0/name`, starts behind its index.
    let segments = match segments.split_first() {
        Some((first, rest)) if is_index(first) => rest,
        _ => &segments,
    };
    types.iter().any(|of| is_below_type(of, segments))
}

fn is_below_type(of: &Type, segments: &[&str]) -> bool {
    let Some((first, rest)) = segments.split_first() else {
        return true;
    };
    if is_placeholder(first) {
        return of
            .fields()
            .iter()
            .any(|field| is_below(field.shape(), rest));
    }
    of.field(first)
        .is_some_and(|field| is_below(field.shape(), rest))
}

fn is_below(shape: &Shape, segments: &[&str]) -> bool {
    let Some((first, rest)) = segments.split_first() else {
        return true;
    };
    match shape {
        Shape::Message(of) => is_below_type(of.get(), segments),
        Shape::List(inner) | Shape::WrappedList(inner) => {
            (is_index(first) || is_placeholder(first)) && is_below(inner, rest)
        }
        Shape::Map(inner) => is_below(inner, rest),
        Shape::Fields | Shape::Raw | Shape::Json | Shape::Any => true,
        Shape::SchemaOrBool | Shape::SchemaOrArray | Shape::SchemaOrStrings => schema(segments),
        _ => false,
    }
}

fn schema(segments: &[&str]) -> bool {
    Atlas::named("apiextensions/v1", "JSONSchemaProps")
        .is_some_and(|of| is_below_type(of, segments))
}

/// An index of an item, or `-`, which stands behind the last one.
fn is_index(segment: &str) -> bool {
    segment == "-" || (!segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A segment that is only known when the program runs: `{index}` of a format string.
fn is_placeholder(segment: &str) -> bool {
    segment.starts_with('{') && segment.ends_with('}')
}
