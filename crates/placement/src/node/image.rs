//! Image references, as far as a kubelet refuses them.

/// The tag of images that can never be pulled.
const PULL_ERROR_TAG: &str = "pull-error";
/// The longest name of a repository, with its registry.
const NAME_BYTES_MAX: usize = 255;
/// The longest tag.
const TAG_BYTES_MAX: usize = 128;

/// The reason for which a container does not start because of its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImageProblem {
    /// The reference cannot be parsed. Nothing helps but another reference.
    InvalidName(String),
    /// The image cannot be pulled. It is tried again and again.
    Pull(String),
}

/// The problem of an image, if it has one: its reference cannot be parsed, or its tag says that it
/// cannot be pulled.
pub(super) fn problem(image: &str) -> Option<ImageProblem> {
    if let Err(fault) = parse(image) {
        return Some(ImageProblem::InvalidName(format!(
            "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: \
             {fault}"
        )));
    }
    let (_, tag) = split_tag(image);
    (tag == Some(PULL_ERROR_TAG)).then(|| {
        ImageProblem::Pull(format!(
            "failed to pull and unpack image {image:?}: its tag says that it cannot be pulled"
        ))
    })
}

/// Checks a reference by the grammar of `distribution/reference`.
fn parse(image: &str) -> Result<(), &'static str> {
    let invalid = "invalid reference format";
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = split_tag(rest);
    if name.is_empty() || tag.is_some_and(|tag| !is_tag(tag)) || digest.is_some_and(is_no_digest) {
        return Err(invalid);
    }
    let (host, path) = match name.split_once('/') {
        Some((host, path)) if is_host(host) => (Some(host), path),
        _ => (None, name),
    };
    let path_is_good = path.split('/').all(is_component);
    if host.is_none() && path.chars().any(|c| c.is_ascii_uppercase()) {
        return Err("invalid reference format: repository name must be lowercase");
    }
    match path_is_good && name.len() <= NAME_BYTES_MAX {
        true => Ok(()),
        false => Err(invalid),
    }
}

/// The name and the tag. A colon before the last slash belongs to a port.
fn split_tag(image: &str) -> (&str, Option<&str>) {
    let last = image.rfind('/').map_or(0, |slash| slash + 1);
    match image[last..].split_once(':') {
        Some((name, tag)) => (&image[..last + name.len()], Some(tag)),
        None => (image, None),
    }
}

fn is_tag(tag: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let starts_well = tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    starts_well && tag.chars().all(is_inner) && tag.len() <= TAG_BYTES_MAX
}

fn is_no_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return true;
    };
    let is_hex = hex.len() >= 32 && hex.chars().all(|c| c.is_ascii_hexdigit());
    algorithm.is_empty() || !is_hex
}

/// Returns true if the part before the first slash names a registry.
fn is_host(host: &str) -> bool {
    let has_mark = host.contains(['.', ':']) || host == "localhost";
    let is_upper = host.chars().any(|c| c.is_ascii_uppercase());
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    (has_mark || is_upper) && host.chars().all(is_good)
}

/// Lower-case words with `.`, `_`, `__` or dashes between them.
fn is_component(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_inner = |c: char| is_word(c) || matches!(c, '.' | '_' | '-');
    part.starts_with(is_word)
        && part.ends_with(is_word)
        && part.chars().all(is_inner)
        && !["..", "___", "._", "_.", ".-", "-.", "_-", "-_"]
            .iter()
            .any(|bad| part.contains(bad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_parsed_as_by_a_kubelet() {
        let digest = format!("a@sha256:{}", "0".repeat(64));
        for good in [
            "web",
            "web:1",
            "library/web:v1.2_3-x",
            "localhost:5000/a/b",
            "ghcr.io/some-one/app__x:latest",
            "registry.k8s.io/pause:3.10",
            digest.as_str(),
        ] {
            assert_eq!(problem(good), None, "{good}");
        }
        for bad in [
            "",
            "web:",
            "a//b",
            "-a",
            "a b",
            "a@sha256:12",
            "a:b:c/",
            "web:-x",
        ] {
            let found = problem(bad);
            assert!(
                matches!(found, Some(ImageProblem::InvalidName(_))),
                "{bad:?}: {found:?}"
            );
        }
        let Some(ImageProblem::InvalidName(message)) = problem("Web") else {
            panic!("upper case is refused");
        };
        assert_eq!(
            message,
            "Failed to apply default image tag \"Web\": couldn't parse image name \"Web\": invalid \
             reference format: repository name must be lowercase"
        );
        assert!(matches!(
            problem("a/b:pull-error"),
            Some(ImageProblem::Pull(_))
        ));
    }
}
