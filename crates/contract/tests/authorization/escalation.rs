//! Roles that would give more than their author has.

use super::matrix::{Row, Table, row};

/// The author may write roles, get pods and do anything to the configmap `x`.
const AUTHOR: &str = r#"[
    {"verbs":["*"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","clusterroles"]},
    {"verbs":["get","list"],"apiGroups":[""],"resources":["pods","*/scale"]},
    {"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["x"]}]"#;
/// The same without the verbs `escalate` and `bind`.
const PLAIN: &str = r#"[
    {"verbs":["get","create","update","patch"],"apiGroups":["rbac.authorization.k8s.io"],
     "resources":["roles","clusterroles"]},
    {"verbs":["get","list"],"apiGroups":[""],"resources":["pods","*/scale"]},
    {"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["x"]},
    {"verbs":["get"],"nonResourceURLs":["/a","/b/*"]}]"#;
const WRITE: &str = r#"{"verbs":["get","create","update","patch"],
    "apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","clusterroles"]}"#;
const SELECTORS: &str = r#"{"clusterRoleSelectors":[{"matchLabels":{"x":"y"}}]}"#;

fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> String {
    format!(
        r#"{{"verbs":[{verbs}],"apiGroups":[{groups}],"resources":[{resources}],
            "resourceNames":[{names}]}}"#
    )
}

fn role(name: &str, rules: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"rules":[{rules}]}}"#)
}

/// A role that an author writes for the namespace, as a trial.
fn trial(name: &str, rules: &str, code: u16) -> Row {
    row(name, "plain", "POST roles?dryRun=All", code).body(role("trial", rules))
}

fn aggregating(name: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"rules":[],"aggregationRule":{SELECTORS}}}"#)
}

pub(crate) fn table() -> Table {
    let strong = rule(r#""*""#, r#""*""#, r#""*""#, "");
    let escalate_named = format!(
        r#"[{WRITE},{{"verbs":["escalate"],"apiGroups":["rbac.authorization.k8s.io"],
            "resources":["roles","clusterroles"],"resourceNames":["named","{{ns}}-named"]}}]"#
    );
    let all = format!(
        r#"[{WRITE},{{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}},
            {{"verbs":["*"],"nonResourceURLs":["*"]}}]"#
    );
    let most = format!(r#"[{WRITE},{{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}}]"#);
    let only_bind = format!(
        r#"[{WRITE},{{"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],
            "resources":["roles","clusterroles"]}}]"#
    );
    Table::default()
        .cluster_user("escalator", AUTHOR)
        .cluster_user("plain", PLAIN)
        .cluster_user("named", &escalate_named)
        .cluster_user("everything", &all)
        .cluster_user("most", &most)
        .cluster_user("binder", &only_bind)
        .with("roles", &role("strong", &strong))
        .with(
            "roles",
            &role("named", &rule(r#""get""#, r#""""#, r#""pods""#, "")),
        )
        .with(
            "roles",
            &role("weak", &rule(r#""get""#, r#""""#, r#""pods""#, "")),
        )
        .with("clusterroles", &role("{ns}-strong", &strong))
        .with("clusterroles", &role("{ns}-named-role", ""))
        .with("clusterroles", &aggregating("{ns}-sum"))
        .rows(comparisons())
        .rows(exemptions(&strong))
        .rows(aggregation())
}

fn comparisons() -> Vec<Row> {
    let pods = |verbs: &str| rule(verbs, r#""""#, r#""pods""#, "");
    let get = |resource: &str| rule(r#""get""#, r#""""#, resource, "");
    let url =
        |verbs: &str, url: &str| format!(r#"{{"verbs":[{verbs}],"nonResourceURLs":[{url}]}}"#);
    let cluster = |name: &str, rules: &str, code: u16| {
        let body = role("{ns}-trial", rules);
        row(name, "plain", "POST clusterroles?dryRun=All", code).body(body)
    };
    vec![
        trial("no rules", "", 201),
        trial("a right that is held", &pods(r#""get""#), 201),
        trial("all rights that are held", &pods(r#""get","list""#), 201),
        trial("a right twice", &format!("{0},{0}", pods(r#""get""#)), 201),
        trial("a verb more", &pods(r#""get","watch""#), 403).says(
            "roles.rbac.authorization.k8s.io \"trial\" is forbidden: user \"{ns}-plain\" \
             (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
             currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\"]}",
        ),
        trial("all verbs", &pods(r#""*""#), 403).says("Verbs:[\"*\"]}"),
        trial(
            "another group",
            &rule(r#""get""#, r#""apps""#, r#""pods""#, ""),
            403,
        )
        .says("{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\"]}"),
        trial(
            "all groups",
            &rule(r#""get""#, r#""*""#, r#""pods""#, ""),
            403,
        ),
        trial("another resource", &get(r#""secrets""#), 403),
        trial("all resources", &get(r#""*""#), 403),
        trial(
            "two resources of which one is held",
            &get(r#""pods","secrets""#),
            403,
        )
        .says("held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"),
        trial(
            "a subresource that is held by its pattern",
            &get(r#""x/scale""#),
            201,
        ),
        trial(
            "the pattern of a subresource itself",
            &get(r#""*/scale""#),
            201,
        ),
        trial("another subresource", &get(r#""pods/status""#), 403),
        trial(
            "another pattern of a subresource",
            &get(r#""*/status""#),
            403,
        ),
        trial(
            "a name of what is held",
            &rule(r#""get""#, r#""""#, r#""pods""#, r#""a""#),
            201,
        ),
        trial(
            "the name that is held",
            &rule(r#""*""#, r#""""#, r#""configmaps""#, r#""x""#),
            201,
        ),
        trial(
            "another name",
            &rule(r#""*""#, r#""""#, r#""configmaps""#, r#""y""#),
            403,
        )
        .says("ResourceNames:[\"y\"], Verbs:[\"*\"]}"),
        trial(
            "two names",
            &rule(r#""get""#, r#""""#, r#""configmaps""#, r#""x","y""#),
            403,
        ),
        trial("no name where one is held", &get(r#""configmaps""#), 403),
        trial(
            "the right to escalate",
            &rule(
                r#""escalate""#,
                r#""rbac.authorization.k8s.io""#,
                r#""roles""#,
                "",
            ),
            403,
        ),
        trial(
            "a rule without verbs",
            &rule("", r#""""#, r#""pods""#, ""),
            422,
        ),
        trial(
            "a rule without groups",
            &rule(r#""get""#, "", r#""pods""#, ""),
            422,
        ),
        trial(
            "a page in a namespace that is held",
            &url(r#""get""#, r#""/a""#),
            422,
        ),
        trial(
            "a page in a namespace that is not held",
            &url(r#""get""#, r#""/x""#),
            403,
        ),
        trial(
            "verbs on one thing are listed together",
            &rule(r#""watch","delete""#, r#""","apps""#, r#""pods""#, ""),
            403,
        )
        .says(
            "held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}\n\
                   {APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}",
        ),
        cluster("a page that is held", &url(r#""get""#, r#""/a""#), 201),
        cluster("a page below a pattern", &url(r#""get""#, r#""/b/c""#), 201),
        cluster(
            "the pattern of pages itself",
            &url(r#""get""#, r#""/b/*""#),
            201,
        ),
        cluster(
            "a wider pattern of pages",
            &url(r#""get""#, r#""/b*""#),
            403,
        ),
        cluster("all pages", &url(r#""get""#, r#""*""#), 403)
            .says("{NonResourceURLs:[\"*\"], Verbs:[\"get\"]}"),
        cluster(
            "another verb on a page",
            &url(r#""get","post""#, r#""/a""#),
            403,
        )
        .says("held:\n{NonResourceURLs:[\"/a\"], Verbs:[\"post\"]}"),
        cluster(
            "a right for the cluster that is held",
            &pods(r#""get""#),
            201,
        ),
        cluster(
            "a right for the cluster that is not held",
            &pods(r#""delete""#),
            403,
        ),
    ]
}

fn exemptions(strong: &str) -> Vec<Row> {
    let more = format!(r#"{{"rules":[{strong}]}}"#);
    let finalizer = r#"{"metadata":{"finalizers":["x.io/y"]}}"#;
    let owner = r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",
        "name":"o","uid":"1"}]}}"#;
    let label = r#"{"metadata":{"labels":{"x":"z"}}}"#;
    vec![
        row("patch to more", "plain", "PATCH roles/weak?dryRun=All", 403).body(more.as_str()),
        row(
            "patch of nothing of a weak role",
            "plain",
            "PATCH roles/weak?dryRun=All",
            200,
        )
        .body("{}"),
        row(
            "patch of nothing of a strong role",
            "plain",
            "PATCH roles/strong?dryRun=All",
            200,
        )
        .body("{}"),
        row(
            "label of a weak role",
            "plain",
            "PATCH roles/weak?dryRun=All",
            200,
        )
        .body(label),
        row(
            "label of a strong role",
            "plain",
            "PATCH roles/strong?dryRun=All",
            403,
        )
        .body(label),
        row(
            "finalizer of a strong role",
            "plain",
            "PATCH roles/strong?dryRun=All",
            200,
        )
        .body(finalizer),
        row(
            "owner of a strong role",
            "plain",
            "PATCH roles/strong?dryRun=All",
            200,
        )
        .body(owner),
        row(
            "owner of a strong role of the cluster",
            "plain",
            "PATCH clusterroles/{ns}-strong?dryRun=All",
            200,
        )
        .body(owner),
        row(
            "fewer rules of a strong role",
            "plain",
            "PATCH roles/strong?dryRun=All",
            200,
        )
        .body(r#"{"rules":[]}"#),
        row(
            "escalate allows a create",
            "escalator",
            "POST roles?dryRun=All",
            201,
        )
        .body(role("trial", strong)),
        row(
            "escalate allows a create for the cluster",
            "escalator",
            "POST clusterroles?dryRun=All",
            201,
        )
        .body(role("{ns}-trial", strong)),
        row(
            "escalate allows a patch",
            "escalator",
            "PATCH roles/weak?dryRun=All",
            200,
        )
        .body(more.as_str()),
        row(
            "escalate for a name allows a patch of it",
            "named",
            "PATCH roles/named?dryRun=All",
            200,
        )
        .body(more.as_str()),
        row(
            "escalate for a name allows no patch of another",
            "named",
            "PATCH roles/weak?dryRun=All",
            403,
        )
        .body(more.as_str()),
        row(
            "escalate for a name allows no create of it",
            "named",
            "POST roles?dryRun=All",
            403,
        )
        .body(role("trial", strong)),
        row(
            "bind allows no role",
            "binder",
            "POST roles?dryRun=All",
            403,
        )
        .body(role("trial", strong)),
        row(
            "everything allows everything",
            "everything",
            "POST clusterroles?dryRun=All",
            201,
        )
        .body(role("{ns}-trial", strong)),
        row(
            "administrators may write any role",
            "admin",
            "POST roles?dryRun=All",
            201,
        )
        .body(role("trial", strong)),
        row(
            "members of administrators may write any role",
            "plain",
            "POST roles?dryRun=All",
            201,
        )
        .header("impersonate-group", "system:masters")
        .body(role("trial", strong)),
        row(
            "a role that is there already",
            "plain",
            "POST roles?dryRun=All",
            409,
        )
        .body(role("weak", "")),
        row(
            "a role of a stranger",
            "stranger",
            "POST roles?dryRun=All",
            403,
        )
        .body(role("trial", ""))
        .says("cannot create resource \"roles\""),
    ]
}

fn aggregation() -> Vec<Row> {
    let trial = aggregating("{ns}-trial");
    let message = "clusterroles.rbac.authorization.k8s.io \"{ns}-trial\" is forbidden: must have \
                   cluster-admin privileges to use the aggregationRule";
    let post = "POST clusterroles?dryRun=All";
    let patch = "PATCH clusterroles/{ns}-sum?dryRun=All";
    vec![
        row("aggregation by one without rights", "plain", post, 403)
            .body(trial.as_str())
            .says(message),
        row("aggregation by one with all resources", "most", post, 201).body(trial.as_str()),
        row(
            "aggregation by one with everything",
            "everything",
            post,
            201,
        )
        .body(trial.as_str()),
        row(
            "aggregation by one who may escalate",
            "escalator",
            post,
            201,
        )
        .body(trial.as_str()),
        row("aggregation by one who may bind", "binder", post, 403).body(trial.as_str()),
        row("aggregation by an administrator", "admin", post, 201).body(trial.as_str()),
        row("aggregation of nothing", "plain", post, 422).body(
            r#"{"metadata":{"name":"{ns}-trial"},"rules":[],
                "aggregationRule":{"clusterRoleSelectors":[]}}"#,
        ),
        row("label of an aggregating role", "plain", patch, 403)
            .body(r#"{"metadata":{"labels":{"x":"z"}}}"#)
            .says("to use the aggregationRule"),
        row("finalizer of an aggregating role", "plain", patch, 200)
            .body(r#"{"metadata":{"finalizers":["x.io/y"]}}"#),
        row("end of an aggregation", "plain", patch, 403).body(r#"{"aggregationRule":null}"#),
        row(
            "begin of an aggregation",
            "plain",
            "PATCH clusterroles/{ns}-named-role?dryRun=All",
            403,
        )
        .body(format!(r#"{{"aggregationRule":{SELECTORS}}}"#)),
        row(
            "end of an aggregation by one with everything",
            "everything",
            patch,
            200,
        )
        .body(r#"{"aggregationRule":null}"#),
    ]
}
