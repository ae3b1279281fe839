//! Backups, checks and repairs of a data directory.

use std::path::Path;

use crate::common::{Binary, run};

fn apply(binary: &Binary, manifest: &Path) {
    let applied = binary.run(&["apply", "-f", manifest.to_str().unwrap()]);
    assert!(applied.succeed().contains("kept"));
}

#[tokio::test]
async fn a_backup_is_restored_and_a_damaged_directory_is_repaired() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let manifest = place.path().join("kept.yaml");
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: kept }\n";
    std::fs::write(&manifest, text).unwrap();
    let mut server = Binary::start("server").await;
    let data = server.kubeconfig().parent().unwrap().to_owned();
    let data = data.to_str().unwrap();
    apply(&server, &manifest);

    let backup = path("backup");
    let in_use = run(&["backup", &backup, "--data", data]);
    assert!(in_use.stderr.contains("is in use by process"), "{in_use:?}");
    server.stop();
    let sound = run(&["check", "--data", data]).succeed();
    assert!(sound.starts_with("sound: "), "{sound}");
    run(&["backup", &backup, "--data", data]).succeed();
    let restored = path("restored");
    run(&["restore", &backup, "--data", &restored]).succeed();
    let full = run(&["restore", &backup, "--data", &restored]);
    assert!(full.stderr.contains("is not empty"), "{full:?}");
    assert_eq!(run(&["check", "--data", &restored]).succeed(), sound);

    let tables = place.path().join("restored/store.redb");
    let mut bytes = std::fs::read(&tables).unwrap();
    bytes[..4096].fill(0xa5);
    std::fs::write(&tables, bytes).unwrap();
    let damaged = run(&["check", "--data", &restored]);
    assert!(damaged.stderr.contains("--repair"), "{damaged:?}");
    let repaired = run(&["check", "--repair", "--data", &restored]).succeed();
    assert!(repaired.starts_with("saved "), "{repaired}");
    assert!(repaired.contains("configmaps default/kept"), "{repaired}");
    let sound = run(&["check", "--data", &restored]).succeed();
    assert!(sound.starts_with("sound: "), "{sound}");
    let nothing = run(&["check", "--data", &path("nothing")]);
    let expected = format!(
        "windlass: there is no cluster in {}; name its directory with --data\n",
        path("nothing")
    );
    nothing.fails(&expected);
}
