//! Kinds that describe the control plane itself: who serves what, how its parts are, and what
//! bounds the load on it.

use windlass_contract::{Edit, Scope, cases, managers, names};
use windlass_core::{Doc, doc};

cases![
    built_in_group_versions_are_registered,
    registered_group_version_says_who_manages_it,
    local_api_service_is_available_at_once,
    api_service_of_another_server_has_a_port,
    api_service_is_called_after_its_version_and_group,
    api_service_without_priorities_is_refused,
    table_of_api_services_says_where_they_are_served,
    components_are_listed_with_a_warning,
    component_is_found_by_name,
    unknown_component_is_not_found,
    first_priority_levels_are_upstreams,
    first_flow_schemas_are_upstreams,
    first_flow_schema_says_who_manages_it,
    flow_schema_is_told_whether_its_level_exists,
    table_of_flow_schemas_goes_by_precedence,
    deprecated_kind_is_warned_of_in_every_answer,
];

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// What is registered is discovered, and other cases look at that.
const DRY_RUN: &str = "/apis/apiregistration.k8s.io/v1/apiservices?dryRun=All";
const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const COMPONENTS: &str = "/api/v1/componentstatuses";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// The first levels and schemas of the embedded server.
const FLOW_TEXT: &str = include_str!("../../../server/src/first_flow.txt");

fn service(version: &str, group: &str) -> Doc {
    doc!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": (format!("{version}.{group}")) },
        "spec": {
            "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10
        }
    })
}

async fn built_in_group_versions_are_registered(t: &Scope) {
    let query = "labelSelector=kube-aggregator.kubernetes.io/automanaged=onstart";
    let list = t.get(&format!("{SERVICES}?{query}")).await.is(200);
    let line = |service: &Doc| {
        let spec = service.at("/spec");
        let (least, priority) = (
            spec.at("/groupPriorityMinimum"),
            spec.at("/versionPriority"),
        );
        format!("{} {least} {priority}", service.meta().name())
    };
    let mut lines: Vec<String> = list.at("/items").items().iter().map(line).collect();
    lines.sort();
    let expected = [
        "v1. 18000 1",
        "v1.admissionregistration.k8s.io 16700 15",
        "v1.apiextensions.k8s.io 16700 15",
        "v1.apps 17800 15",
        "v1.authentication.k8s.io 17700 15",
        "v1.authorization.k8s.io 17600 15",
        "v1.autoscaling 17500 15",
        "v1.batch 17400 15",
        "v1.certificates.k8s.io 17300 15",
        "v1.coordination.k8s.io 16500 15",
        "v1.discovery.k8s.io 16200 15",
        "v1.events.k8s.io 17750 15",
        "v1.flowcontrol.apiserver.k8s.io 16100 21",
        "v1.networking.k8s.io 17200 15",
        "v1.node.k8s.io 16300 15",
        "v1.policy 17100 15",
        "v1.rbac.authorization.k8s.io 17000 15",
        "v1.resource.k8s.io 16200 21",
        "v1.scheduling.k8s.io 16600 15",
        "v1.storage.k8s.io 16800 15",
        "v2.autoscaling 17500 30",
    ];
    assert_eq!(lines, expected);
}

async fn registered_group_version_says_who_manages_it(t: &Scope) {
    let service = t.get(&format!("{SERVICES}/v1.apps")).await.is(200);
    let entries = managers(&service);
    assert_eq!(*entries.at("/0/manager"), "kube-apiserver");
    assert_eq!(*entries.at("/0/operation"), "Update");
    assert!(service.at("/metadata/generation").is_null());
}

async fn local_api_service_is_available_at_once(t: &Scope) {
    let object = service("v1", "local.contract.example");
    let made = t.made(DRY_RUN, &object).await;
    let condition = made.at("/status/conditions/0");
    assert_eq!(*condition.at("/type"), "Available");
    assert_eq!(*condition.at("/status"), "True");
    assert_eq!(*condition.at("/reason"), "Local");
    assert_eq!(
        *condition.at("/message"),
        "Local APIServices are always available"
    );
}

async fn api_service_of_another_server_has_a_port(t: &Scope) {
    let at = doc!({ "namespace": (t.namespace()), "name": "elsewhere" });
    let object = service("v1", "remote.contract.example")
        .set("/spec/service", at)
        .set("/spec/insecureSkipTLSVerify", true);
    let made = t.made(DRY_RUN, &object).await;
    assert_eq!(*made.at("/spec/service/port"), 443);
    assert_eq!(*made.at("/status"), Doc::empty_object());
}

async fn api_service_is_called_after_its_version_and_group(t: &Scope) {
    let object = service("v1", "named.contract.example").set("/metadata/name", "other");
    let refusal = t.create(SERVICES, &object).await.fails(422, "Invalid");
    let wanted = "must be `spec.version+\".\"+spec.group`: \"v1.named.contract.example\"";
    refusal
        .because("FieldValueInvalid", "metadata.name")
        .mentions(wanted);
}

async fn api_service_without_priorities_is_refused(t: &Scope) {
    let object = service("v1", "plain.contract.example")
        .set("/spec/groupPriorityMinimum", 0)
        .set("/spec/versionPriority", 1001)
        .set(
            "/spec/service",
            doc!({ "name": "", "namespace": "", "port": 70_000 }),
        );
    let refusal = t.create(SERVICES, &object).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.groupPriorityMinimum")
        .because("FieldValueInvalid", "spec.versionPriority")
        .because("FieldValueRequired", "spec.service.namespace")
        .because("FieldValueRequired", "spec.service.name")
        .because("FieldValueInvalid", "spec.service.port");
}

async fn table_of_api_services_says_where_they_are_served(t: &Scope) {
    let t = t.with_header("accept", TABLE);
    let table = t.get(&format!("{SERVICES}/v1.batch")).await.is(200);
    let columns = table.at("/columnDefinitions").items().iter();
    let columns: Vec<&str> = columns.map(|column| column.str_at("/name")).collect();
    assert_eq!(columns, ["Name", "Service", "Available", "Age"]);
    let cells = table.at("/rows/0/cells").items();
    assert_eq!(
        Doc::from(cells[..3].to_vec()),
        doc!(["v1.batch", "Local", "True"])
    );
}

async fn components_are_listed_with_a_warning(t: &Scope) {
    let answer = t.get(COMPONENTS).await;
    assert_eq!(
        answer.header("warning"),
        "299 - \"v1 ComponentStatus is deprecated in v1.19+\""
    );
    let list = answer.is(200);
    assert_eq!(*list.at("/kind"), "ComponentStatusList");
    assert_eq!(*list.at("/metadata"), Doc::empty_object());
    let mut found = names(&list);
    found.sort_unstable();
    assert_eq!(found, ["controller-manager", "etcd-0", "scheduler"]);
}

async fn component_is_found_by_name(t: &Scope) {
    let component = t.get(&format!("{COMPONENTS}/etcd-0")).await.is(200);
    let condition = doc!({ "type": "Healthy", "status": "True", "message": "ok" });
    let expected = doc!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": { "name": "etcd-0" },
        "conditions": [condition]
    });
    assert_eq!(component, expected);
}

async fn unknown_component_is_not_found(t: &Scope) {
    let answer = t.get(&format!("{COMPONENTS}/nope")).await;
    answer
        .fails(404, "NotFound")
        .says("componentstatus \"nope\" not found");
}

fn names_in_text(word: &str) -> Vec<&'static str> {
    let lines = FLOW_TEXT.lines().filter_map(|line| line.strip_prefix(word));
    let mut names: Vec<&str> = lines.filter_map(|line| line.split(' ').nth(1)).collect();
    names.sort_unstable();
    names
}

async fn first_priority_levels_are_upstreams(t: &Scope) {
    for name in names_in_text("level") {
        let path = format!("{FLOW}/prioritylevelconfigurations/{name}");
        let level = t.get(&path).await.is(200);
        let marker = level.at("/metadata/annotations");
        assert_eq!(
            *marker,
            doc!({ "apf.kubernetes.io/autoupdate-spec": "true" })
        );
        let line = FLOW_TEXT
            .lines()
            .find(|line| line.starts_with(&format!("level {name} ")));
        assert_eq!(level_line(&level), line.expect("a line"));
    }
}

/// A level as the text has it.
fn level_line(level: &Doc) -> String {
    let name = level.meta().name();
    let limits = level.at("/spec/limited");
    if limits.is_null() {
        return format!("level {name} exempt 0");
    }
    let (shares, lendable) = (
        limits.at("/nominalConcurrencyShares"),
        limits.at("/lendablePercent"),
    );
    let queuing = limits.at("/limitResponse/queuing");
    let line = format!("level {name} {shares} {lendable}");
    match queuing.is_null() {
        true => line,
        false => format!(
            "{line} {} {} {}",
            queuing.at("/queues"),
            queuing.at("/handSize"),
            queuing.at("/queueLengthLimit")
        ),
    }
}

async fn first_flow_schemas_are_upstreams(t: &Scope) {
    let mut text = String::new();
    for name in names_in_text("schema") {
        let schema = t.get(&format!("{FLOW}/flowschemas/{name}")).await.is(200);
        text += &schema_lines(&schema);
    }
    let mut expected: Vec<String> = Vec::new();
    for line in FLOW_TEXT.lines().filter(|line| !line.starts_with('#')) {
        match (line.starts_with("schema "), expected.last_mut()) {
            (true, _) => expected.push(format!("{line}\n")),
            (false, Some(schema)) => *schema += &format!("{line}\n"),
            _ => {}
        }
    }
    expected.sort();
    assert_eq!(text, expected.concat());
}

fn words(list: &Doc) -> String {
    let word = |item: &Doc| match item.as_str() {
        Some("") | None => "-".to_owned(),
        Some(word) => word.to_owned(),
    };
    list.items().iter().map(word).collect::<Vec<_>>().join(",")
}

/// A flow schema as the text has it.
fn schema_lines(schema: &Doc) -> String {
    let spec = schema.at("/spec");
    let subject = |subject: &Doc| match subject.str_at("/kind") {
        "User" => format!("user={}", subject.str_at("/user/name")),
        "Group" => format!("group={}", subject.str_at("/group/name")),
        _ => {
            let account = subject.at("/serviceAccount");
            format!(
                "account={}/{}",
                account.str_at("/namespace"),
                account.str_at("/name")
            )
        }
    };
    let rules = spec.at("/rules/0");
    let subjects: Vec<String> = rules.at("/subjects").items().iter().map(subject).collect();
    let method = spec.at("/distinguisherMethod/type").as_str().unwrap_or("-");
    let mut text = format!(
        "schema {} {} {} {method} {}\n",
        schema.meta().name(),
        spec.at("/matchingPrecedence"),
        spec.str_at("/priorityLevelConfiguration/name"),
        subjects.join(",")
    );
    for rule in rules.at("/resourceRules").items() {
        let (verbs, groups) = (words(rule.at("/verbs")), words(rule.at("/apiGroups")));
        text += &format!("  {verbs} {groups} {}", words(rule.at("/resources")));
        assert_eq!(words(rule.at("/namespaces")), "*");
        text += if *rule.at("/clusterScope") == true {
            " cluster\n"
        } else {
            "\n"
        };
    }
    for rule in rules.at("/nonResourceRules").items() {
        let (verbs, paths) = (words(rule.at("/verbs")), words(rule.at("/nonResourceURLs")));
        text += &format!("  {verbs} {paths}\n");
    }
    text
}

async fn first_flow_schema_says_who_manages_it(t: &Scope) {
    let schema = t.get(&format!("{FLOW}/flowschemas/exempt")).await.is(200);
    let entries = managers(&schema);
    let who = |entry: &Doc| {
        let (manager, operation) = (entry.str_at("/manager"), entry.str_at("/operation"));
        format!("{manager} {operation} {}", entry.str_at("/subresource"))
    };
    let entries: Vec<String> = entries.items().iter().map(who).collect();
    let expected = [
        "api-priority-and-fairness-config-consumer-v1 Apply status",
        "api-priority-and-fairness-config-producer-v1 Update ",
    ];
    assert_eq!(entries, expected);
}

async fn flow_schema_is_told_whether_its_level_exists(t: &Scope) {
    let name = t.unique("s");
    let level = t.unique("l");
    let schema = doc!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": (name.as_str()) },
        "spec": { "priorityLevelConfiguration": { "name": (level.as_str()) } }
    });
    let made = t.made(&format!("{FLOW}/flowschemas"), &schema).await;
    let query = format!(
        "fieldSelector=metadata.name={name}&resourceVersion={}",
        made.str_at("/metadata/resourceVersion")
    );
    let mut watch = t.watch(&format!("{FLOW}/flowschemas"), &query).await;
    let told = watch.expect("MODIFIED", &name).await;
    let condition = told.at("/status/conditions/0");
    assert_eq!(*condition.at("/status"), "True", "{told}");
    assert_eq!(*condition.at("/reason"), "NotFound");
    let missing = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level:?} but \
         there is no such object"
    );
    assert_eq!(*condition.at("/message"), *missing);
    let object = doc!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": { "name": (level.as_str()) },
        "spec": { "type": "Limited", "limited": { "limitResponse": { "type": "Reject" } } }
    });
    t.made(&format!("{FLOW}/prioritylevelconfigurations"), &object)
        .await;
    let told = watch.expect("MODIFIED", &name).await;
    assert_eq!(*told.at("/status/conditions/0/status"), "False", "{told}");
    assert_eq!(*told.at("/status/conditions/0/reason"), "Found");
}

async fn table_of_flow_schemas_goes_by_precedence(t: &Scope) {
    let t = t.with_header("accept", TABLE);
    let table = t.get(&format!("{FLOW}/flowschemas")).await.is(200);
    let rows = table.at("/rows").items().iter();
    let ranks: Vec<i64> = rows.filter_map(|row| row.at("/cells/2").as_i64()).collect();
    assert!(ranks.len() > 10 && ranks.is_sorted(), "{ranks:?}");
}

async fn deprecated_kind_is_warned_of_in_every_answer(t: &Scope) {
    let warning =
        "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    let endpoints = doc!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": "a" } });
    let made = t.create("endpoints", &endpoints).await;
    let found = t.get("endpoints/a").await;
    let listed = t.get("endpoints").await;
    let missing = t.get("endpoints/b").await;
    let deleted = t.delete("endpoints/a").await;
    for answer in [made, found, listed, missing, deleted] {
        assert_eq!(answer.headers("warning"), [warning], "{}", answer.text());
    }
}
