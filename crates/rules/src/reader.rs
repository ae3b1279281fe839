//! Reading other objects.

use windlass_core::Doc;

/// The objects that rules about one object look at: its namespace, its classes, its accounts.
///
/// The server implements it over its store; a test over a handful of documents.
pub trait Reader: Send + Sync {
    /// One object in its stored form; the namespace is empty for cluster scope.
    fn find(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Doc>;
}
