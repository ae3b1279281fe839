//! Empty values, as upstream's structs encode them in JSON.

use windlass_core::Doc;

use crate::table::{Field, Shape};

/// Returns true if upstream's encoder omits a value that is present.
pub(crate) fn is_left_out(field: &Field, value: &Doc) -> bool {
    if field.is_pointer() {
        return false;
    }
    match field.shape() {
        shape if is_scalar(shape) => field.omits_empty() && *value == zero(shape),
        Shape::List(_) | Shape::WrappedList(_) => field.omits_empty() && value.items().is_empty(),
        Shape::Map(_) => field.omits_empty() && value.as_object().is_some_and(|it| it.is_empty()),
        _ => field.omits_zero() && value.is_null(),
    }
}

/// Returns true for scalars: neither structs nor lists nor maps.
pub(crate) fn is_scalar(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Bool
            | Shape::Int32
            | Shape::Int64
            | Shape::Double
            | Shape::String
            | Shape::Enum(_)
            | Shape::Bytes
    )
}

/// The empty value of a plain shape.
pub(crate) fn zero(shape: &Shape) -> Doc {
    match shape {
        Shape::Bool => Doc::from(false),
        Shape::Int32 | Shape::Int64 | Shape::Double => Doc::from(0),
        _ => Doc::from(""),
    }
}
