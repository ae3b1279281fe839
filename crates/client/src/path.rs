//! Paths of resources and objects.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use windlass_core::Gvr;

use crate::{Cause, Error, Outcome};

/// What is written as it is inside one segment of a path (RFC 3986, `pchar`).
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

/// Where a resource is found, in one namespace or outside of any.
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
        Outcome::NotSent,
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
    fn names_that_would_change_the_path_are_refused() {
        for name in ["", ".", "..", "a/b", "a%2fb"] {
            let error = ResourcePath::new(&PODS, Some("x"))
                .object(name)
                .unwrap_err();
            assert_eq!(error.outcome(), Outcome::NotSent, "{name:?}");
        }
    }
}
