//! With the feature `descriptions`: collects what k8s-openapi says about the built-in types and
//! their fields into one packed file, so that the server can say it too.
//!
//! The texts are read from the sources of k8s-openapi that the build uses anyway. None is kept in
//! the repository, and no code of k8s-openapi is compiled for them.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "descriptions")]
    descriptions::pack()?;
    Ok(())
}

#[cfg(feature = "descriptions")]
mod descriptions {
    use std::collections::BTreeMap;
    use std::env;
    use std::error::Error;
    use std::fs;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    /// Whose descriptions these are, and the directory of the version that the atlas is about.
    const PACKAGE: &str = "k8s-openapi";
    const TYPES: &str = "src/v1_36";
    /// Between two entries, and between a name and its description.
    const ENTRY: char = '\u{1e}';
    const TEXT: char = '\u{1f}';

    pub(super) fn pack() -> Result<(), Box<dyn Error>> {
        let mut described = BTreeMap::new();
        match sources() {
            Some(sources) => collect(&sources, &mut described)?,
            None => println!("cargo::warning=there are no sources of {PACKAGE}: no descriptions"),
        }
        let mut text = String::new();
        for (name, entries) in &described {
            text += &format!("{ENTRY}={name}");
            for (field, description) in entries {
                text += &format!("{ENTRY}{field}{TEXT}{description}");
            }
        }
        let path = Path::new(&env::var("OUT_DIR")?).join("descriptions");
        let mut packed = DeflateEncoder::new(fs::File::create(path)?, Compression::best());
        packed.write_all(text.as_bytes())?;
        packed.finish()?;
        Ok(())
    }

    /// Where the types of k8s-openapi are described: as cargo says, or else where it keeps sources, for
    /// cargo does not answer if another member of the workspace needs what is not there.
    fn sources() -> Option<PathBuf> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR")?;
        let output = Command::new(env::var_os("CARGO")?)
            .args(["metadata", "--offline", "--format-version=1"])
            .args(["--filter-platform", &env::var("TARGET").ok()?])
            .current_dir(manifest)
            .output()
            .ok()?;
        let metadata = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = metadata
            .split('"')
            .filter_map(|text| text.strip_suffix("/Cargo.toml"))
            .map(PathBuf::from)
            .find(|path| is_package(path));
        told.or_else(kept).map(|path| path.join(TYPES))
    }

    /// The sources among those that cargo keeps for all projects.
    fn kept() -> Option<PathBuf> {
        let home = match env::var_os("CARGO_HOME") {
            Some(home) => PathBuf::from(home),
            None => Path::new(&env::var_os("HOME")?).join(".cargo"),
        };
        let registries = fs::read_dir(home.join("registry/src")).ok()?;
        let packages = registries
            .flatten()
            .filter_map(|registry| fs::read_dir(registry.path()).ok());
        let mut paths: Vec<PathBuf> = packages
            .flat_map(|packages| packages.flatten().map(|package| package.path()))
            .filter(|path| is_package(path))
            .collect();
        paths.sort();
        paths.pop()
    }

    fn is_package(path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PACKAGE)) && path.join(TYPES).is_dir()
    }

    /// By the name of a type: descriptions by the names of fields, and that of the type itself by none.
    type Described = BTreeMap<String, BTreeMap<String, String>>;

    fn collect(directory: &Path, described: &mut Described) -> Result<(), Box<dyn Error>> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                collect(&path, described)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                read(&fs::read_to_string(path)?, described);
            }
        }
        Ok(())
    }

    /// Reads the schema of a type. The depth of a line says what it is about: the sources are generated.
    fn read(source: &str, described: &mut Described) {
        const TYPE: &str = "            \"";
        const FIELD: &str = "                \"";
        let title = source.lines().next().unwrap_or_default();
        let Some(name) = title.strip_prefix("// Generated from definition ") else {
            return;
        };
        let Some((_, schema)) = source.split_once("fn json_schema(") else {
            return;
        };
        let entries = described.entry(name.trim().to_owned()).or_default();
        let mut field = String::new();
        for line in schema.lines() {
            if let Some((name, _)) = line
                .strip_prefix(FIELD)
                .and_then(|rest| rest.split_once('"'))
            {
                name.clone_into(&mut field);
            } else if line.strip_prefix(TYPE).is_some() && !line.contains("\"description\": ") {
                field.clear();
            } else if let Some(text) = description(line) {
                entries.entry(field.clone()).or_insert(text);
            }
        }
    }

    /// The description on a line, in one of its two forms.
    fn description(line: &str) -> Option<String> {
        let line = line.trim();
        let literal = line
            .strip_prefix("\"description\": \"")
            .and_then(|rest| rest.strip_suffix("\","))
            .or_else(|| {
                let (_, rest) = line.split_once("insert(\"description\".into(), \"")?;
                rest.strip_suffix("\".into());")
            })?;
        Some(unescape(literal))
    }

    fn unescape(literal: &str) -> String {
        let mut text = String::with_capacity(literal.len());
        let mut chars = literal.chars();
        while let Some(c) = chars.next() {
            match (c, c == '\\') {
                (_, true) => match chars.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(other) => text.push(other),
                    None => {}
                },
                (c, false) => text.push(c),
            }
        }
        text
    }
}
