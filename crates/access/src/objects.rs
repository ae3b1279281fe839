//! The objects that access depends on.

use windlass_core::Doc;
use windlass_rules::reader::Reader;

use crate::grants::Grant;
use crate::user::User;

/// The objects that authentication, authorization and admission look at.
///
/// The server implements it over its store; a test over a handful of documents.
pub trait Objects: Reader {
    /// All objects of a resource, of one namespace or of all (empty), in the order of their keys.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Doc>;

    /// The role bindings that apply to a user: those for the cluster, then those of the namespace,
    /// each in the order of their names.
    fn grants(&self, user: &User, namespace: &str) -> Vec<Grant>;

    /// The pods on a node, of one namespace or of all (empty).
    fn pods_on(&self, node: &str, namespace: &str) -> Vec<Doc>;
}
