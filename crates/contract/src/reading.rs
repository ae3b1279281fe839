//! What cases read from objects again and again.

use windlass_core::Doc;

/// The revision of an object or a list.
#[must_use]
pub fn revision(object: &Doc) -> &str {
    object.str_at("/metadata/resourceVersion")
}

/// The revision of an object or a list as a number, to tell what came first.
#[must_use]
pub fn number(object: &Doc) -> u64 {
    revision(object).parse().expect("a revision is a number")
}

/// The names of the objects in a list, in its order.
#[must_use]
pub fn names(list: &Doc) -> Vec<&str> {
    let items = list.at("/items").items().iter();
    items.map(|item| item.str_at("/metadata/name")).collect()
}
