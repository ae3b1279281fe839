//! Paths of resources and objects.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use windlass_core::{GroupVersion, Gvr};

use crate::{Cause, Error, RequestOutcome};

/// The characters that are not percent-encoded inside one segment of a path (RFC 3986, `pchar`).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// The resource, and the object if there is one, that a write is about.
///
/// Every write carries it in its extensions, so that a layer of the transport need not read the
/// path again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// The resource.
    pub resource: Gvr,
    /// The namespace; `None` outside of any.
    pub namespace: Option<String>,
    /// The name of the object; `None` for a collection.
    pub name: Option<String>,
}

impl RequestTarget {
    /// The target of a path that a caller wrote out; `None` if it is the path of no resource.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        let parts: Vec<String> = parts
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group_version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, resource, name) = match rest {
            // Two subresources of namespaces look like resources inside of one.
            ["namespaces", name, "status" | "finalize"] => (None, "namespaces", Some(*name)),
            ["namespaces", namespace, resource, name @ ..] => {
                (Some(*namespace), *resource, name.first().copied())
            }
            [resource, name @ ..] => (None, *resource, name.first().copied()),
            [] => return None,
        };
        let group_version: GroupVersion = group_version.parse().ok()?;
        Some(Self {
            resource: group_version.with_resource(resource.to_owned()),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        })
    }
}

/// The URL path of a resource, in one namespace or outside of any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourcePath<'a> {
    resource: &'a Gvr,
    namespace: Option<&'a str>,
}

impl<'a> ResourcePath<'a> {
    pub(crate) fn new(resource: &'a Gvr, namespace: Option<&'a str>) -> Self {
        Self {
            resource,
            namespace,
        }
    }

    /// The target of a request to one object, or to all of them.
    pub(crate) fn target(&self, name: Option<&str>) -> RequestTarget {
        RequestTarget {
            resource: self.resource.clone(),
            namespace: self.namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        }
    }

    /// The path of all objects.
    pub(crate) fn collection(&self) -> Result<String, Error> {
        let Self {
            resource,
            namespace,
        } = self;
        let mut path = match resource.group() {
            "" => format!("/api/{}", segment(resource.version())?),
            group => format!("/apis/{}/{}", segment(group)?, segment(resource.version())?),
        };
        if let Some(namespace) = namespace {
            path.push_str("/namespaces/");
            path.push_str(&segment(namespace)?);
        }
        path.push('/');
        path.push_str(&segment(resource.resource())?);
        Ok(path)
    }

    /// The path of one object.
    pub(crate) fn object(&self, name: &str) -> Result<String, Error> {
        Ok(format!("{}/{}", self.collection()?, segment(name)?))
    }

    /// The path of a part of one object, such as its status.
    pub(crate) fn subresource(&self, name: &str, part: &str) -> Result<String, Error> {
        Ok(format!("{}/{}", self.object(name)?, segment(part)?))
    }
}

/// One segment of a path. An empty name would turn one object into all of them, and a name with
/// dots or slashes would lead elsewhere.
fn segment(name: &str) -> Result<String, Error> {
    let problem = match name {
        "" => "a name may not be empty",
        "." | ".." => "a name may not be '.' or '..'",
        _ if name.contains(['/', '%']) => "a name may not contain '/' or '%'",
        _ => return Ok(utf8_percent_encode(name, SEGMENT).to_string()),
    };
    Err(Error::new(
        RequestOutcome::NotSent,
        format!("{name:?}"),
        Cause::Malformed(problem.to_owned()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Gvr = Gvr::constant("", "v1", "pods");
    const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");

    #[test]
    fn paths_follow_group_namespace_and_name() {
        let pods = ResourcePath::new(&PODS, None).collection();
        assert_eq!(pods.unwrap(), "/api/v1/pods");
        let scale = ResourcePath::new(&DEPLOYMENTS, Some("shop")).subresource("web", "scale");
        assert_eq!(
            scale.unwrap(),
            "/apis/apps/v1/namespaces/shop/deployments/web/scale"
        );
        let odd = ResourcePath::new(&PODS, None).object("system:x y");
        assert_eq!(odd.unwrap(), "/api/v1/pods/system:x%20y");
    }

    #[test]
    fn a_target_is_read_from_the_path_that_was_made_of_it() {
        const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");
        for (path, name) in [
            (ResourcePath::new(&PODS, Some("shop")), None),
            (ResourcePath::new(&PODS, Some("shop")), Some("web")),
            (ResourcePath::new(&PODS, None), Some("system:x y")),
            (ResourcePath::new(&DEPLOYMENTS, Some("shop")), Some("web")),
            (ResourcePath::new(&NAMESPACES, None), Some("shop")),
        ] {
            let target = Some(path.target(name));
            let whole = match name {
                None => path.collection(),
                Some(name) => path.object(name),
            };
            assert_eq!(RequestTarget::parse(&whole.unwrap()), target);
            if let Some(name) = name {
                let status = path.subresource(name, "status").unwrap();
                assert_eq!(RequestTarget::parse(&status), target);
            }
        }
        let finalize = RequestTarget::parse("/api/v1/namespaces/shop/finalize").unwrap();
        assert_eq!(finalize.resource, NAMESPACES);
        for path in ["/version", "/api/v1", "/apis/apps/v1", ""] {
            assert_eq!(RequestTarget::parse(path), None, "{path}");
        }
    }

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        for name in ["", ".", "..", "a/b", "a%2fb"] {
            let error = ResourcePath::new(&PODS, Some("x"))
                .object(name)
                .unwrap_err();
            assert_eq!(error.outcome(), RequestOutcome::NotSent, "{name:?}");
        }
    }
}
