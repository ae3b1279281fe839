//! Metrics, as the sources register them. A family without a sample is printed by nobody, so a
//! running process would not tell of all.

use std::path::{Path, PathBuf};

/// A metric as a scrape shows it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Metric {
    name: String,
    sort: &'static str,
    help: String,
}

/// The page.
pub(super) fn page(crates: &Path) -> String {
    let mut text = "# Metrics\nNames and labels are upstream's where upstream has the metric. \
        Controllers serve them at `--metrics-bind-address`, the API server at `/metrics`.\n"
        .to_owned();
    for (title, parts) in [
        ("The API server", &["server"][..]),
        ("Clients", &["client"]),
        ("Informers", &["cache"]),
        ("Controllers and work queues", &["runtime"]),
        ("Built-in controllers", &["placement", "workloads"]),
    ] {
        let sources = parts
            .iter()
            .flat_map(|part| files(&crates.join(part).join("src")));
        let mut metrics: Vec<Metric> = sources
            .flat_map(|path| found(&std::fs::read_to_string(path).unwrap()))
            .collect();
        metrics.sort();
        metrics.dedup();
        assert!(!metrics.is_empty(), "{title} have metrics");
        text += &format!("\n## {title}\n| metric | type | meaning |\n|---|---|---|\n");
        for Metric { name, sort, help } in metrics {
            text += &format!("| `{name}` | {sort} | {} |\n", help.trim_end_matches('.'));
        }
    }
    text
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The metrics that a file registers: in a registry, through a collector, or as text.
fn found(source: &str) -> Vec<Metric> {
    let source = source.split("#[cfg(test)]").next().unwrap_or(source);
    let mut metrics = Vec::new();
    for (at, _) in source.match_indices("registry.register(") {
        metrics.extend(registered(source, &source[at..]));
    }
    for sort in ["gauge", "counter", "histogram"] {
        for (at, call) in source.match_indices(&format!("{sort}(&mut to, ")) {
            let rest = &source[at + call.len()..];
            metrics.extend(metric(sort, &literals(rest, 2)));
        }
    }
    for (at, start) in source.match_indices("let name = \"") {
        let rest = &source[at + start.len() - 1..];
        if let [name, sort @ ("gauge" | "counter" | "histogram"), help] = literals(rest, 3)[..] {
            let sort = match sort {
                "gauge" => "gauge",
                "counter" => "counter",
                _ => "histogram",
            };
            metrics.push(Metric {
                name: name.to_owned(),
                sort,
                help: help.to_owned(),
            });
        }
    }
    metrics
}

/// `registry.register("name", "help", all.field.clone())`: the field says of which type it is.
fn registered(source: &str, call: &str) -> Option<Metric> {
    let words = literals(call, 2);
    let call = call.split(';').next().unwrap_or(call);
    let after = call.split(words.get(1)?).nth(1)?;
    let field = after.split(['.', ',', '(', ')', '&', '"', ' ', '\n']);
    let field = field
        .map(str::trim)
        .find(|word| !["", "all", "self", "metrics", "clone"].contains(word))?;
    let of_type = |sort: &str| {
        let declared = source.split(&format!("    {field}:")).nth(1);
        declared.is_some_and(|rest| rest.split('\n').next().unwrap_or(rest).contains(sort))
    };
    let sorts = [
        ("Counter", "counter"),
        ("Gauge", "gauge"),
        ("Histogram", "histogram"),
    ];
    let sort = sorts.into_iter().find(|(name, _)| of_type(name));
    metric(sort.map_or("gauge", |(_, sort)| sort), &words)
}

/// The encoder adds `_total` to the names of counters.
fn metric(sort: &'static str, words: &[&str]) -> Option<Metric> {
    let [name, help] = words[..] else { return None };
    let suffix = if sort == "counter" { "_total" } else { "" };
    Some(Metric {
        // ReplicaSets and ReplicationControllers share their metrics, under names of their own.
        name: name.replace("{prefix}", "replicaset_controller") + suffix,
        sort,
        help: help.to_owned(),
    })
}

/// The first string literals of some code.
fn literals(code: &str, count: usize) -> Vec<&str> {
    code.split('"').skip(1).step_by(2).take(count).collect()
}

#[test]
fn metrics_are_found_in_each_of_their_forms() {
    let source = r#"
        struct A {
            adds: Family<Labels, Counter>,
        }
        registry.register("adds", "How many", all.adds.clone());
        gauge(&mut to, "depth", "How deep", &all, |s| s.depth)?;
        let name = "objects";
        self.head(name, "gauge", "How many objects.");
    "#;
    let names: Vec<_> = found(source)
        .into_iter()
        .map(|metric| (metric.name, metric.sort))
        .collect();
    let expected = [
        ("adds_total", "counter"),
        ("depth", "gauge"),
        ("objects", "gauge"),
    ];
    assert_eq!(names, expected.map(|(name, sort)| (name.to_owned(), sort)));
}
