//! The claims that pods of a StatefulSet use, one for each template and ordinal.

use windlass_core::{Doc, EditError, Object, doc};

/// A claim of a pod: the name of its template, and the object.
pub(super) struct ClaimDraft {
    pub(super) template: String,
    pub(super) name: String,
    pub(super) doc: Doc,
}

/// The claims of an ordinal, in the order of their templates.
pub(super) fn drafts(set: &Doc, ordinal: i64) -> Result<Vec<ClaimDraft>, EditError> {
    let templates = set.at("/spec/volumeClaimTemplates").items().iter();
    let draft = |template: &Doc| {
        let name = name(set, template, ordinal);
        let labels = template.at("/metadata/labels").as_object();
        let labels = labels.cloned().unwrap_or_else(Object::empty);
        let selected = set.at("/spec/selector/matchLabels").as_object();
        let selected = selected.into_iter().flat_map(Object::iter);
        let labels = selected.fold(labels, |labels, (key, value)| {
            labels.with(key, value.clone())
        });
        let mut doc = template
            .with("/apiVersion", "v1")?
            .with("/kind", "PersistentVolumeClaim")?
            .with("/metadata/name", name.as_str())?
            .with("/metadata/namespace", set.meta().namespace())?;
        if !labels.is_empty() {
            doc = doc.with("/metadata/labels", labels)?;
        }
        Ok(ClaimDraft {
            template: template.meta().name().to_owned(),
            name,
            doc,
        })
    };
    templates.map(draft).collect()
}

/// The names of the claims of an ordinal.
pub(super) fn names(set: &Doc, ordinal: i64) -> Vec<String> {
    let templates = set.at("/spec/volumeClaimTemplates").items().iter();
    templates.map(|it| name(set, it, ordinal)).collect()
}

fn name(set: &Doc, template: &Doc, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", template.meta().name(), set.meta().name())
}

/// Returns true if the volumes of a pod are the claims of its ordinal.
pub(super) fn match_volumes(set: &Doc, pod: &Doc, ordinal: i64) -> bool {
    let volumes = pod.at("/spec/volumes").items();
    let templates = set.at("/spec/volumeClaimTemplates").items();
    templates.iter().all(|template| {
        let wanted = name(set, template, ordinal);
        let mut volumes = volumes.iter();
        let volume = volumes.find(|it| it.str_at("/name") == template.meta().name());
        volume.is_some_and(|it| it.str_at("/persistentVolumeClaim/claimName") == wanted)
    })
}

/// A pod with the claims of its ordinal as volumes. They replace volumes of the same names.
pub(super) fn with_volumes(set: &Doc, pod: &Doc, ordinal: i64) -> Result<Doc, EditError> {
    let drafts = drafts(set, ordinal)?;
    if drafts.is_empty() {
        return Ok(pod.clone());
    }
    let claimed = drafts.iter().map(|draft| {
        let source = doc!({ "claimName": (draft.name.as_str()) });
        doc!({ "name": (draft.template.as_str()), "persistentVolumeClaim": source })
    });
    let is_claimed = |volume: &&Doc| {
        let name = volume.str_at("/name");
        drafts.iter().any(|draft| draft.template == name)
    };
    let others = pod.at("/spec/volumes").items().iter();
    let others = others.filter(|it| !is_claimed(it)).cloned();
    let volumes: Vec<Doc> = claimed.chain(others).collect();
    pod.with("/spec/volumes", volumes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_replace_volumes_and_carry_the_labels_of_the_selector() {
        let set = doc!({
            "metadata": { "name": "web", "namespace": "ns" },
            "spec": {
                "selector": { "matchLabels": { "app": "web" } },
                "volumeClaimTemplates": [
                    { "metadata": { "name": "data", "labels": { "x": "y" } }, "spec": {} }
                ]
            }
        });
        let drafts = drafts(&set, 2).unwrap();
        assert_eq!(drafts[0].name, "data-web-2");
        let labels = drafts[0].doc.at("/metadata/labels").clone();
        assert_eq!(labels, doc!({ "app": "web", "x": "y" }));
        let pod =
            doc!({ "spec": { "volumes": [{ "name": "data", "emptyDir": {} }, { "name": "z" }] } });
        assert!(!match_volumes(&set, &pod, 2));
        let pod = with_volumes(&set, &pod, 2).unwrap();
        assert!(match_volumes(&set, &pod, 2) && !match_volumes(&set, &pod, 3));
        assert_eq!(pod.at("/spec/volumes").items().len(), 2);
    }
}
