//! `windlass backup`, `restore` and `check`: the data directory while no server uses it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_core::Env;
use windlass_store::{Check, EncryptionKeys, Repair, StoreOptions};

use crate::held::Held;

/// Files beside the store that belong to a cluster.
const KEY_FILES: &[&str] = &["ca.key", "ca.crt", "sa.key", "admin.token"];
/// Names of objects that are printed of each sort.
const PRINTED_LIMIT: usize = 1_000;

/// The data directory of a cluster.
#[derive(Args, Debug)]
struct DataArguments {
    /// The data directory. No server may use it meanwhile.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        value_name = "DIR",
        default_value = ".windlass"
    )]
    data: PathBuf,
}

impl DataArguments {
    /// Takes the directory, which must hold a store.
    fn take(&self) -> anyhow::Result<Held> {
        let has_store = ["store.redb", "store.state", "store.log.0"];
        let has_store = has_store.iter().any(|name| self.data.join(name).exists());
        anyhow::ensure!(
            has_store,
            "there is no cluster in {}; name its directory with --data",
            self.data.display()
        );
        Held::take(&self.data)
    }
}

/// Options of `backup`.
#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// The file to write, which must not exist. Whoever reads it has all Secrets and keys.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    data: DataArguments,
    /// The keys that Secrets are encrypted with. The backup holds them encrypted.
    #[arg(long, env = "WINDLASS_ENCRYPTION_KEY", value_name = "FILE")]
    encryption_key: Option<PathBuf>,
}

impl Backup {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let _held = self.data.take()?;
        let options = options(&self.data.data, self.encryption_key.as_deref())?;
        let counts = windlass_store::check(&options)
            .context("a damaged store is not backed up; see `windlass check --repair`")?;
        let bytes = windlass_store::backup(&self.data.data, KEY_FILES, &self.file)?;
        println!(
            "{} objects at revision {}: {bytes} bytes in {}",
            counts.objects,
            counts.revision,
            self.file.display()
        );
        Ok(())
    }
}

/// Options of `restore`.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data directory to restore, which must be empty or not exist.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        value_name = "DIR",
        default_value = ".windlass"
    )]
    data: PathBuf,
}

impl Restore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        windlass_store::restore(&self.file, &self.data, KEY_FILES)?;
        println!("restored {}", self.data.display());
        Ok(())
    }
}

/// Options of `check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    data: DataArguments,
    /// Make a new store of everything that is sound, and keep the damaged files beside it.
    #[arg(long)]
    repair: bool,
    /// Write a sound store anew: all Secrets are encrypted with the first key, and nothing of what
    /// was deleted is left in its files.
    #[arg(long, conflicts_with = "repair")]
    rewrite: bool,
    /// The keys that Secrets are encrypted with.
    #[arg(long, env = "WINDLASS_ENCRYPTION_KEY", value_name = "FILE")]
    encryption_key: Option<PathBuf>,
}

impl CheckArguments {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let _held = self.data.take()?;
        let options = options(&self.data.data, self.encryption_key.as_deref())?;
        if self.repair {
            // The engine may panic on damage; what it says helps nobody.
            std::panic::set_hook(Box::new(|_| {}));
            print_repair(&windlass_store::repair(&options)?);
            return Ok(());
        }
        if self.rewrite {
            let objects = windlass_store::rewrite(&options)?;
            println!("{objects} objects written anew");
            return Ok(());
        }
        let checked = windlass_store::check(&options);
        print_check(&checked.context("`windlass check --repair` saves what is sound")?);
        Ok(())
    }
}

fn print_check(counts: &Check) {
    println!(
        "sound: {} objects of {} resources, {} events, revision {}, {} bytes",
        counts.objects, counts.resources, counts.events, counts.revision, counts.bytes
    );
}

fn print_repair(repair: &Repair) {
    println!(
        "saved {} objects; {} commits were in the log; the store goes on after revision {}",
        repair.objects, repair.commits, repair.revision
    );
    println!("the damaged files are in {}", repair.damaged.display());
    let lost: Vec<String> = repair
        .lost
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    print_names("lost", &lost);
    print_names("an older state was saved of", &repair.older);
    let title = "the index is damaged, so that these may have been deleted before";
    print_names(title, &repair.uncertain);
}

fn print_names(title: &str, names: &[String]) {
    if names.is_empty() {
        return;
    }
    println!("{title}: {}", names.len());
    for name in names.iter().take(PRINTED_LIMIT) {
        println!("  {name}");
    }
    if names.len() > PRINTED_LIMIT {
        println!("  and {} others", names.len() - PRINTED_LIMIT);
    }
}

fn options(data: &Path, keys: Option<&Path>) -> anyhow::Result<StoreOptions> {
    let mut options = StoreOptions::directory(Env::real(), data);
    options.encryption = keys.map(read_keys).transpose()?;
    Ok(options)
}

/// Reads the file of `--encryption-key`.
pub(crate) fn read_keys(path: &Path) -> anyhow::Result<EncryptionKeys> {
    let name = || format!("cannot use the encryption keys in {}", path.display());
    let bytes = windlass_server::read_key_file(path).with_context(name)?;
    let bytes = bytes.with_context(|| format!("there is no file {}", path.display()))?;
    let text = String::from_utf8(bytes).with_context(name)?;
    EncryptionKeys::parse(&text).with_context(name)
}
