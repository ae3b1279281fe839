//! Configurations of webhooks: defaults and validation.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{configuration, configurations, rule};

cases![
    defaults_are_filled_in,
    webhooks_are_validated,
    rules_are_validated,
    addresses_are_validated,
    conditions_are_validated,
    names_are_unique,
    conditions_are_limited,
    generation_counts_changes,
];

fn webhook(t: &Scope) -> Doc {
    doc!({
        "name": "a.example.com", "clientConfig": { "url": "https://127.0.0.1:1/x" },
        "rules": [(rule(&["configmaps"]))],
        "namespaceSelector": { "matchLabels": { "case": (t.unique("none")) } },
        "sideEffects": "None", "admissionReviewVersions": ["v1"]
    })
}

async fn defaults_are_filled_in(t: &Scope) {
    for sort in ["Mutating", "Validating"] {
        let service = doc!({ "service": { "name": "a", "namespace": "b" } });
        let mut sparse = webhook(t).set("/clientConfig", service);
        sparse = sparse.cut("/namespaceSelector");
        // Nothing is intercepted.
        sparse = sparse.set("/rules/0/resources", doc!(["nothing"]));
        let made = configuration(sort, &t.unique("a"), &[sparse]);
        let made = t.made(&configurations(sort), &made).await;
        let hook = made.at("/webhooks/0");
        assert_eq!(hook.at("/failurePolicy"), "Fail");
        assert_eq!(hook.at("/matchPolicy"), "Equivalent");
        assert_eq!(*hook.at("/namespaceSelector"), doc!({}));
        assert_eq!(*hook.at("/objectSelector"), doc!({}));
        assert_eq!(hook.at("/timeoutSeconds"), 10);
        assert_eq!(hook.at("/rules/0/scope"), "*");
        assert_eq!(hook.at("/clientConfig/service/port"), 443);
        let reinvocation = match sort {
            "Mutating" => Doc::from("Never"),
            _ => Doc::NULL,
        };
        assert_eq!(*hook.at("/reinvocationPolicy"), reinvocation);
    }
}

/// Creates configurations with one change each, which must be refused with these words.
async fn check(t: &Scope, wrong: &[(&str, Doc, &str)]) {
    for sort in ["Mutating", "Validating"] {
        for (pointer, value, said) in wrong {
            let hook = match value.is_null() {
                true => webhook(t).cut(pointer),
                false => webhook(t).set(pointer, value),
            };
            let name = t.unique("a");
            let object = configuration(sort, &name, &[hook]);
            let refusal = t.create(&configurations(sort), &object).await;
            refusal.fails(422, "Invalid").says(&format!(
                "{sort}WebhookConfiguration.admissionregistration.k8s.io \"{name}\" is invalid: \
                 webhooks[0].{said}"
            ));
        }
    }
}

async fn webhooks_are_validated(t: &Scope) {
    check(
        t,
        &[
            ("/name", doc!(""), "name: Required value"),
            (
                "/name",
                doc!("two.segments"),
                "name: Invalid value: \"two.segments\": should be a domain with at least three \
                 segments separated by dots",
            ),
            (
                "/sideEffects",
                Doc::NULL,
                "sideEffects: Required value: must specify one of None, NoneOnDryRun",
            ),
            (
                "/sideEffects",
                doc!("Some"),
                "sideEffects: Unsupported value: \"Some\": supported values: \"None\", \
                 \"NoneOnDryRun\"",
            ),
            (
                "/timeoutSeconds",
                doc!(31),
                "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 \
                 seconds",
            ),
            (
                "/timeoutSeconds",
                doc!(0),
                "timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 \
                 seconds",
            ),
            (
                "/failurePolicy",
                doc!("Maybe"),
                "failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
            ),
            (
                "/matchPolicy",
                doc!("Maybe"),
                "matchPolicy: Unsupported value: \"Maybe\": supported values: \"Equivalent\", \
                 \"Exact\"",
            ),
            (
                "/admissionReviewVersions",
                Doc::NULL,
                "admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ),
            (
                "/admissionReviewVersions",
                doc!(["v9"]),
                "admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of \
                 v1, v1beta1",
            ),
            (
                "/admissionReviewVersions",
                doc!(["v1", "v1"]),
                "admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version",
            ),
        ],
    )
    .await;
}

async fn rules_are_validated(t: &Scope) {
    check(
        t,
        &[
            (
                "/rules/0/operations",
                doc!([]),
                "rules[0].operations: Required value",
            ),
            (
                "/rules/0/operations",
                doc!(["*", "CREATE"]),
                "rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must \
                 not specify other operations",
            ),
            (
                "/rules/0/operations",
                doc!(["READ"]),
                "rules[0].operations[0]: Unsupported value: \"READ\": supported values: \"*\", \
                 \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
            ),
            (
                "/rules/0/apiGroups",
                doc!([]),
                "rules[0].apiGroups: Required value",
            ),
            (
                "/rules/0/apiGroups",
                doc!(["*", "apps"]),
                "rules[0].apiGroups: Invalid value: [\"*\",\"apps\"]: if '*' is present, must not \
                 specify other API groups",
            ),
            (
                "/rules/0/apiVersions",
                doc!([""]),
                "rules[0].apiVersions[0]: Required value",
            ),
            (
                "/rules/0/resources",
                doc!([""]),
                "rules[0].resources[0]: Required value",
            ),
            (
                "/rules/0/resources",
                doc!(["pods/*", "pods/status"]),
                "rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, \
                 must not specify pods/status",
            ),
            (
                "/rules/0/resources",
                doc!(["*/status", "pods/status"]),
                "rules[0].resources[1]: Invalid value: \"pods/status\": if '*/status' is present, \
                 must not specify pods/status",
            ),
            (
                "/rules/0/resources",
                doc!(["*/*", "pods"]),
                "rules[0].resources: Invalid value: [\"*/*\",\"pods\"]: if '*/*' is present, must \
                 not specify other resources",
            ),
            (
                "/rules/0/resources",
                doc!(["*", "pods"]),
                "rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not \
                 specify other resources without subresources",
            ),
            (
                "/rules/0/scope",
                doc!("Galaxy"),
                "rules[0].scope: Unsupported value: \"Galaxy\": supported values: \"*\", \
                 \"Cluster\", \"Namespaced\"",
            ),
        ],
    )
    .await;
}

async fn addresses_are_validated(t: &Scope) {
    let service = |path: &str| doc!({ "service": { "name": "a", "namespace": "b", "path": path } });
    let form = "; desired format: https://host[/path]";
    check(
        t,
        &[
            (
                "/clientConfig",
                doc!({}),
                "clientConfig: Required value: exactly one of url or service is required",
            ),
            (
                "/clientConfig/service",
                doc!({ "name": "a", "namespace": "b" }),
                "clientConfig: Required value: exactly one of url or service is required",
            ),
            (
                "/clientConfig/url",
                doc!("http://a/b"),
                &format!(
                    "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL \
                     scheme{form}"
                ),
            ),
            (
                "/clientConfig/url",
                doc!("https:///b"),
                &format!("clientConfig.url: Invalid value: \"\": host must be specified{form}"),
            ),
            (
                "/clientConfig/url",
                doc!("https://me@a/b"),
                "clientConfig.url: Invalid value: \"me\": user information is not permitted in the \
                 URL",
            ),
            (
                "/clientConfig/url",
                doc!("https://a/b#c"),
                "clientConfig.url: Invalid value: \"c\": fragments are not permitted in the URL",
            ),
            (
                "/clientConfig/url",
                doc!("https://a/b?c=d"),
                "clientConfig.url: Invalid value: \"c=d\": query parameters are not permitted in \
                 the URL",
            ),
            (
                "/clientConfig",
                doc!({ "service": { "name": "", "namespace": "b" } }),
                "clientConfig.service.namespace: Required value",
            ),
            (
                "/clientConfig",
                doc!({ "service": { "name": "a", "namespace": "" } }),
                "clientConfig.service.name: Required value",
            ),
            (
                "/clientConfig",
                doc!({ "service": { "name": "a", "namespace": "b", "port": 65536 } }),
                "clientConfig.service.port: Invalid value: 65536: port is not valid: must be \
                 between 1 and 65535, inclusive",
            ),
            (
                "/clientConfig",
                service("ab"),
                "clientConfig.service.path: Invalid value: \"ab\": must start with a '/'",
            ),
            (
                "/clientConfig",
                service("//"),
                "clientConfig.service.path: Invalid value: \"//\": segment[0] may not be empty",
            ),
            (
                "/clientConfig",
                service("/a//b"),
                "clientConfig.service.path: Invalid value: \"/a//b\": segment[1] may not be empty",
            ),
        ],
    )
    .await;
}

async fn conditions_are_validated(t: &Scope) {
    let condition =
        |name: &str, expression: &str| doc!([{ "name": name, "expression": expression }]);
    check(
        t,
        &[
            (
                "/matchConditions",
                condition("", "true"),
                "matchConditions[0].name: Required value",
            ),
            (
                "/matchConditions",
                condition("a", " "),
                "matchConditions[0].expression: Required value",
            ),
            (
                "/matchConditions",
                condition("a", "object.metadata.name"),
                "matchConditions[0].expression: Invalid value: \"object.metadata.name\": must \
                 evaluate to bool but got dyn",
            ),
            (
                "/matchConditions",
                condition("a", "nobody"),
                "matchConditions[0].expression: Invalid value: \"nobody\": compilation failed: \
                 ERROR: <input>:1:1: undeclared reference to 'nobody' (in container '')\n | \
                 nobody\n | ^",
            ),
            (
                "/matchConditions",
                doc!([{ "name": "a", "expression": "true" }, { "name": "a", "expression": "true" }]),
                "matchConditions[1].name: Duplicate value: \"a\"",
            ),
        ],
    )
    .await;
}

async fn names_are_unique(t: &Scope) {
    for sort in ["Mutating", "Validating"] {
        let object = configuration(sort, &t.unique("a"), &[webhook(t), webhook(t)]);
        let refusal = t.create(&configurations(sort), &object).await;
        let refusal = refusal.fails(422, "Invalid");
        refusal.because("FieldValueDuplicate", "webhooks[1].name");
    }
}

async fn conditions_are_limited(t: &Scope) {
    let condition = |index: usize| doc!({ "name": (format!("c{index}")), "expression": "true" });
    let conditions: Vec<Doc> = (0..65).map(condition).collect();
    let hook = webhook(t).set("/matchConditions", conditions);
    let object = configuration("Validating", &t.unique("a"), &[hook]);
    let refusal = t.create(&configurations("Validating"), &object).await;
    let refusal = refusal.fails(422, "Invalid");
    refusal.because("FieldValueTooMany", "webhooks[0].matchConditions");
}

async fn generation_counts_changes(t: &Scope) {
    let object = configuration("Validating", &t.unique("a"), &[webhook(t)]);
    let made = t.made(&configurations("Validating"), &object).await;
    assert_eq!(made.at("/metadata/generation"), 1);
    let path = format!("{}/{}", configurations("Validating"), t.unique("a"));
    let changed = made.set("/webhooks/0/timeoutSeconds", 3);
    let changed = t.update(&path, &changed).await.is(200);
    assert_eq!(changed.at("/metadata/generation"), 2);
}
