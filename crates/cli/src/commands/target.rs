//! What a command is about: `pods`, `pods web db`, `pod/web svc/db`, `pods,services`, `all`.

use anyhow::bail;
use windlass_client::ApiResource;

use super::connect::Session;

/// One resource, and the names of some of its objects; all of them if there are none.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) resource: ApiResource,
    pub(crate) names: Vec<String>,
}

impl Target {
    /// Whether single objects are named.
    pub(crate) fn is_named(&self) -> bool {
        !self.names.is_empty()
    }
}

/// Reads the words of a command line.
pub(crate) async fn targets(session: &Session, words: &[String]) -> anyhow::Result<Vec<Target>> {
    let Some((first, names)) = words.split_first() else {
        bail!("say which resource, such as pods, or TYPE/NAME");
    };
    if words.iter().any(|word| word.contains('/')) {
        return slashed(session, words).await;
    }
    let resources = resources(session, first).await?;
    if resources.len() > 1 && !names.is_empty() {
        bail!("when naming objects, name one type, or use TYPE/NAME");
    }
    let with_names = |resource| Target {
        resource,
        names: names.to_vec(),
    };
    Ok(resources.into_iter().map(with_names).collect())
}

async fn slashed(session: &Session, words: &[String]) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for word in words {
        let (kind, name) = match word.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                (kind, name)
            }
            _ => bail!("{word:?} is not TYPE/NAME, as the other arguments are"),
        };
        let resource = session.resource(kind).await?;
        match targets
            .iter_mut()
            .find(|known| known.resource.gvr == resource.gvr)
        {
            Some(known) => known.names.push(name.to_owned()),
            None => targets.push(Target {
                resource,
                names: vec![name.to_owned()],
            }),
        }
    }
    Ok(targets)
}

/// The resources of a list such as `pods,svc`, in which a category stands for its members.
async fn resources(session: &Session, list: &str) -> anyhow::Result<Vec<ApiResource>> {
    let mut found: Vec<ApiResource> = Vec::new();
    let known = session.discovery.discovery().await;
    let known = known.map_err(|error| session.explain(error))?;
    for name in list.split(',') {
        let of_category = known.resources.iter().filter(|resource| {
            let is_member = resource.categories.iter().any(|member| member == name);
            is_member && resource.verbs.iter().any(|verb| verb == "list")
        });
        let of_category: Vec<_> = of_category.cloned().collect();
        match of_category.is_empty() {
            true => found.push(session.resource(name).await?),
            false => found.extend(of_category),
        }
    }
    found.dedup_by(|one, other| one.gvr == other.gvr);
    Ok(found)
}

/// How kubectl names an object: `pod/web`, `deployment.apps/web`.
pub(crate) fn title(resource: &ApiResource, name: &str) -> String {
    let singular = match resource.singular.as_str() {
        "" => resource.gvk.kind().to_lowercase(),
        singular => singular.to_owned(),
    };
    match resource.gvr.group() {
        "" => format!("{singular}/{name}"),
        group => format!("{singular}.{group}/{name}"),
    }
}
