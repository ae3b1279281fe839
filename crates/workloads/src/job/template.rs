//! The pods that a Job asks for.

use windlass_core::{Doc, EditError, Object, doc};

use super::{
    FINALIZER, JobSpec,
    failure_policy::match_failure,
    pods::{COMPLETION_INDEX, FAILURE_COUNT, IGNORED_COUNT, JobPod},
};

/// The variable by which a container knows the index of its pod.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The longest start of a generated name.
const PREFIX_BYTES_LIMIT: usize = 58;

/// The template of the pods of a Job.
#[derive(Clone, Debug)]
pub(super) struct PodTemplate(Doc);

impl PodTemplate {
    /// The template with the finalizer, and for an Indexed Job with the variable of the index.
    pub(super) fn of(job: &Doc, spec: &JobSpec) -> Result<Self, EditError> {
        let mut template = job.at("/spec/template").with_finalizer(FINALIZER);
        if spec.is_indexed() {
            for at in ["/spec/initContainers", "/spec/containers"] {
                let containers = template.at(at).items();
                if !containers.is_empty() {
                    let containers: Vec<Doc> = containers.iter().map(with_variable).collect();
                    template = template.with(at, containers)?;
                }
            }
        }
        Ok(Self(template))
    }

    pub(super) fn doc(&self) -> &Doc {
        &self.0
    }

    /// The template of the pod of one index, in place of one that has failed.
    pub(super) fn for_index(
        &self,
        job: &Doc,
        spec: &JobSpec,
        index: usize,
        replaced: Option<&JobPod>,
    ) -> Result<Doc, EditError> {
        let mut annotations = vec![(COMPLETION_INDEX, index.to_string())];
        if spec.per_index_limit.is_some() {
            annotations.extend(failure_counts(spec, replaced));
        }
        let annotations = annotations.into_iter().map(|(key, it)| (key, it.into()));
        let (labels, text) = (self.0.at("/metadata/labels"), index.to_string());
        let labels = extended(labels, [(COMPLETION_INDEX, text.into())]);
        let annotations = extended(self.0.at("/metadata/annotations"), annotations);
        let hostname = format!("{}-{index}", job.meta().name());
        self.0
            .with("/metadata/labels", labels)?
            .with("/metadata/annotations", annotations)?
            .with("/spec/hostname", hostname)
    }
}

/// An object with more fields; one that is not there has none.
fn extended(known: &Doc, fields: impl IntoIterator<Item = (&'static str, Doc)>) -> Object {
    let known = known.as_object().cloned().unwrap_or_else(Object::empty);
    let fields = fields.into_iter();
    fields.fold(known, |known, (key, value)| known.with(key, value))
}

/// The counts that travel from a failed pod to the one in its place.
fn failure_counts(spec: &JobSpec, replaced: Option<&JobPod>) -> Vec<(&'static str, String)> {
    let (mut counted, mut ignored) = replaced.map_or((0, 0), JobPod::index_failures);
    if let Some(pod) = replaced {
        match match_failure(&spec.failure_policy, pod.doc()).is_counted() {
            true => counted += 1,
            false => ignored += 1,
        }
    }
    let mut counts = vec![(FAILURE_COUNT, counted.to_string())];
    if ignored > 0 {
        counts.push((IGNORED_COUNT, ignored.to_string()));
    }
    counts
}

fn with_variable(container: &Doc) -> Doc {
    let variables = container.at("/env").items();
    let mut names = variables.iter().map(|it| it.str_at("/name"));
    let Some(known) = container.as_object() else {
        return container.clone();
    };
    if names.any(|name| name == INDEX_VARIABLE) {
        return container.clone();
    }
    let path = format!("metadata.labels['{COMPLETION_INDEX}']");
    let reference = doc!({ "fieldRef": { "fieldPath": path } });
    let variable = doc!({ "name": INDEX_VARIABLE, "valueFrom": reference });
    let mut variables = variables.to_vec();
    variables.push(variable);
    known.with("env", variables.into()).into()
}

/// The start of the name of a pod with an index: the name of the Job is cut if both do not fit.
pub(super) fn index_prefix(job: &str, index: usize) -> String {
    let suffix = format!("-{index}-");
    let mut end = job
        .len()
        .min(PREFIX_BYTES_LIMIT.saturating_sub(suffix.len()));
    while !job.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &job[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_before_the_index() {
        assert_eq!(index_prefix("pi", 7), "pi-7-");
        let long = "x".repeat(63);
        let prefix = index_prefix(&long, 12);
        assert_eq!((prefix.len(), prefix.ends_with("x-12-")), (58, true));
    }

    #[test]
    fn a_variable_of_the_user_stays() {
        let own = doc!({ "name": "c", "env": [{ "name": "JOB_COMPLETION_INDEX", "value": "x" }] });
        assert_eq!(with_variable(&own), own);
        let bare = with_variable(&doc!({ "name": "c" }));
        let path = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        assert_eq!(bare.str_at("/env/0/valueFrom/fieldRef/fieldPath"), path);
    }
}
