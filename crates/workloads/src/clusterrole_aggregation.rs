//! ClusterRole aggregation: a role with an aggregation rule has the rules of all roles that the
//! rule selects.

use windlass_cache::{Obj, SharedInformer};
use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, GroupVersion, Key, LabelSelector, Object, Selector, doc};
use windlass_runtime::{Action, Context, Controller, Manager, ResourceKind, Result, Trigger};

/// The name of the controller, as kube-controller-manager has it. Its field manager is called the
/// same.
pub const NAME: &str = "clusterrole-aggregation-controller";

/// The lists of a rule. One that is empty says the same as one that is absent.
const RULE_FIELDS: [&str; 5] = [
    "apiGroups",
    "nonResourceURLs",
    "resourceNames",
    "resources",
    "verbs",
];

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Roles that are synced at the same time.
    pub workers: usize,
}

impl Default for Options {
    /// Upstream's: five workers.
    fn default() -> Self {
        Self { workers: 5 }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let roles = manager.factory().dynamic(cluster_roles().gvr().clone());
    let (all, reconciled) = (roles.clone(), roles);
    let reconcile = move |key: Key, cx: Context| {
        let roles = reconciled.clone();
        async move { aggregate(&key, &cx, &roles).await }
    };
    let controller = Controller::of_kind(cluster_roles(), reconcile)
        // The reaction below names this role, too.
        .filter(|_| false)
        .reacts_to_kind(cluster_roles(), move |_| aggregates(&all))
        .named(NAME)
        .queue_named("ClusterRoleAggregator")
        .workers(options.workers);
    manager.add(controller);
}

fn cluster_roles() -> ResourceKind {
    let group_version = GroupVersion::constant("rbac.authorization.k8s.io", "v1");
    ResourceKind::cluster(group_version, "ClusterRole", "clusterroles")
}

/// All roles that gather rules: each may select the one that has changed, or have selected it.
fn aggregates(roles: &SharedInformer) -> Vec<Trigger> {
    let roles = roles.lister().snapshot();
    let gathering = roles.iter().filter(|role| !rule_of(role).is_null());
    gathering.map(|role| Trigger::now(role.key())).collect()
}

fn rule_of(role: &Obj) -> &Doc {
    role.doc().at("/aggregationRule")
}

async fn aggregate(key: &Key, cx: &Context, roles: &SharedInformer) -> Result<Action> {
    let Some(role) = roles.lister().get(key) else {
        return Ok(Action::done());
    };
    if rule_of(&role).is_null() {
        return Ok(Action::done());
    }
    let rules = gathered(&role, roles)?;
    let present = role.doc().at("/rules").items().iter().map(normal);
    if present.eq(rules.iter().cloned()) {
        return Ok(Action::done());
    }
    let mut applied = doc!({
        "apiVersion": (role.doc().str_at("/apiVersion")), "kind": "ClusterRole",
        // A role that was deleted meanwhile must not come back.
        "metadata": { "name": (key.name()), "uid": (role.meta().uid_str()) },
    });
    if !rules.is_empty() {
        applied = applied.with("/rules", rules)?;
    }
    let options = WriteOptions::manager(NAME).force().metadata_only();
    let api = cx.api(&cluster_roles(), "");
    api.patch(key.name(), &Patch::Apply(applied), &options)
        .await?;
    Ok(Action::done())
}

/// The rules of the roles that are selected: by selector, then by name, each rule once.
fn gathered(role: &Obj, roles: &SharedInformer) -> Result<Vec<Doc>> {
    let mut rules: Vec<Doc> = Vec::new();
    for selector in rule_of(role).at("/clusterRoleSelectors").items() {
        let selector: LabelSelector = selector.decode()?;
        let mut selected = roles.lister().list(&Selector::try_from(&selector)?);
        selected.retain(|other| other.name() != role.name());
        selected.sort_by(|a, b| a.name().cmp(b.name()));
        for rule in selected.iter().flat_map(|it| it.doc().at("/rules").items()) {
            let rule = normal(rule);
            // Equal documents are one pointer, so this compares addresses.
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    Ok(rules)
}

/// A rule without its empty lists.
fn normal(rule: &Doc) -> Doc {
    let fields = RULE_FIELDS.iter().filter_map(|field| {
        let list = rule.get(field).filter(|list| !list.items().is_empty());
        list.map(|list| (*field, list.clone()))
    });
    fields.collect::<Object>().into()
}
