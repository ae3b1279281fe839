//! What a request path is about.

use windlass_core::GroupResource;

/// The parts of a request path that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The resource; `None` if the path is of no resource.
    pub(crate) resource: Option<GroupResource>,
    /// The namespace; `None` outside of any.
    pub(crate) namespace: Option<String>,
    /// The name of the object; `None` for a collection.
    pub(crate) name: Option<String>,
}

impl Target {
    pub(crate) fn parse(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return Self::default(),
        };
        let (namespace, resource, name) = match rest {
            // Two parts of namespaces look like resources inside of one.
            ["namespaces", name, "status" | "finalize"] => (None, "namespaces", Some(*name)),
            ["namespaces", namespace, resource, name @ ..] => {
                (Some(*namespace), *resource, name.first().copied())
            }
            [resource, name @ ..] => (None, *resource, name.first().copied()),
            [] => return Self::default(),
        };
        Self {
            resource: Some(GroupResource::new(group.to_owned(), resource.to_owned())),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resource_and_object() {
        let cases = [
            ("/api/v1/namespaces/shop/pods", "pods", None),
            (
                "/api/v1/namespaces/shop/pods/web/status",
                "pods",
                Some("web"),
            ),
            ("/api/v1/namespaces/shop", "namespaces", Some("shop")),
            (
                "/api/v1/namespaces/shop/finalize",
                "namespaces",
                Some("shop"),
            ),
            ("/api/v1/nodes/n1", "nodes", Some("n1")),
            (
                "/apis/apps/v1/namespaces/shop/deployments/web",
                "deployments.apps",
                Some("web"),
            ),
        ];
        for (path, resource, name) in cases {
            let target = Target::parse(path);
            assert_eq!(target.resource.unwrap().to_string(), resource, "{path}");
            assert_eq!(target.name.as_deref(), name, "{path}");
            let is_inside = path.contains("/shop/") && resource != "namespaces";
            assert_eq!(
                target.namespace.as_deref(),
                is_inside.then_some("shop"),
                "{path}"
            );
        }
        assert_eq!(Target::parse("/version"), Target::default());
    }
}
