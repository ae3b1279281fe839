//! The figures of webhooks.

use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Reply, Scope, cases};
use windlass_core::doc;

use super::support::{configured, hook, start};

cases![
    calls_are_counted,
    rejections_are_counted,
    failures_that_are_ignored_are_counted,
    exclusions_are_counted,
];

/// Demands lines of the page of figures.
async fn check(t: &Scope, lines: &[String]) {
    let page = t.get("/metrics").await;
    let page = page.text();
    for line in lines {
        let is_there = page.lines().any(|found| found == line);
        let name = line.split('{').next().expect("a name");
        let close: Vec<&str> = page
            .lines()
            .filter(|found| found.starts_with(name))
            .collect();
        assert!(is_there, "{line} is not in {close:#?}");
    }
}

fn unique(t: &Scope) -> String {
    format!("{}.example.com", t.unique("v"))
}

async fn calls_are_counted(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let name = unique(t);
    for (sort, path) in [("Validating", "v"), ("Mutating", "m")] {
        let hook = hook(t, &webhook, path).set("/name", name.as_str());
        configured(t, sort, &webhook, &[hook]).await;
    }
    t.made("configmaps", &config_map("a")).await;
    let total = "apiserver_admission_webhook_request_total";
    let duration = "apiserver_admission_webhook_admission_duration_seconds_count";
    let line = |metric: &str, code: &str, sort: &str| {
        format!(
            "{metric}{{{code}name=\"{name}\",operation=\"CREATE\",rejected=\"false\",type=\"{sort}\"}} 1"
        )
    };
    check(
        t,
        &[
            line(total, "code=\"200\",", "admit"),
            line(total, "code=\"200\",", "validating"),
            line(duration, "", "admit"),
            line(duration, "", "validating"),
        ],
    )
    .await;
}

async fn rejections_are_counted(t: &Scope) {
    let webhook = start(|call| match call.request().str_at("/name") {
        "denied" => Reply::Response(doc!({ "allowed": false, "status": { "code": 700 } })),
        _ => Reply::Raw(500, String::new()),
    })
    .await;
    let name = unique(t);
    let hook = hook(t, &webhook, "v").set("/name", name.as_str());
    configured(t, "Validating", &webhook, &[hook]).await;
    for object in ["denied", "failed"] {
        t.create("configmaps", &config_map(object)).await;
    }
    let line = |error: &str, code: u16| {
        format!(
            "apiserver_admission_webhook_rejection_count{{error_type=\"{error}\",name=\"{name}\",\
             operation=\"CREATE\",rejection_code=\"{code}\",type=\"validating\"}} 1"
        )
    };
    check(
        t,
        &[line("no_error", 600), line("calling_webhook_error", 500)],
    )
    .await;
}

async fn failures_that_are_ignored_are_counted(t: &Scope) {
    let webhook = start(|_| Reply::Raw(500, String::new())).await;
    let name = unique(t);
    let hook = hook(t, &webhook, "v").set("/name", name.as_str());
    let hook = hook.set("/failurePolicy", "Ignore");
    configured(t, "Validating", &webhook, &[hook]).await;
    t.made("configmaps", &config_map("a")).await;
    let metric = "apiserver_admission_webhook_fail_open_count";
    check(
        t,
        &[format!("{metric}{{name=\"{name}\",type=\"validating\"}} 1")],
    )
    .await;
}

async fn exclusions_are_counted(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let name = unique(t);
    let condition = doc!([{ "name": "never", "expression": "false" }]);
    let hook = hook(t, &webhook, "v").set("/name", name.as_str());
    configured(
        t,
        "Validating",
        &webhook,
        &[hook.set("/matchConditions", condition)],
    )
    .await;
    t.made("configmaps", &config_map("a")).await;
    let metric = "apiserver_admission_match_condition_exclusions_total";
    check(
        t,
        &[format!(
            "{metric}{{kind=\"webhook\",name=\"{name}\",operation=\"CREATE\",type=\"validate\"}} 1"
        )],
    )
    .await;
}
