//! The recipe of the image names what there is, and agrees with the chart that runs it. No container
//! engine is asked: this is all that can be known without one.

use super::{file, read};
use anyhow::{Context, Result, ensure};
use regex::Regex;
use serde_json::Value;

#[test]
fn what_the_recipe_copies_is_there_and_is_all_that_the_workspace_needs() -> Result<()> {
    let recipe = read("Containerfile")?;
    let copied = Regex::new(r"(?m)^COPY ([^-\n].*) \S+$")?;
    let mut sources = Vec::new();
    for copy in copied.captures_iter(&recipe) {
        sources.extend(copy[1].split_whitespace().map(str::to_owned));
    }
    ensure!(sources.len() > 5, "{sources:?}");
    let ignored = read(".dockerignore")?;
    for source in &sources {
        ensure!(file(source).exists(), "there is no {source}");
        ensure!(
            !ignored.lines().any(|line| line == source),
            "{source} is ignored"
        );
    }
    // Cargo wants to see every member, and the compiler every file that is compiled in.
    let members = read("Cargo.toml")?;
    ensure!(
        members.contains(r#"members = ["crates/*", "xtask"]"#),
        "the members are others"
    );
    for source in ["Cargo.toml", "Cargo.lock", "crates", "xtask"] {
        ensure!(
            sources.iter().any(|known| known == source),
            "{source} is missing"
        );
    }
    Ok(())
}

#[test]
fn the_recipe_agrees_with_the_chart_and_the_workspace() -> Result<()> {
    let recipe = read("Containerfile")?;
    let values: Value = serde_saphyr::from_str(&read("charts/muster/values.yaml")?)?;
    let user = values["podSecurityContext"]["runAsUser"]
        .as_u64()
        .context("a user")?;
    let workspace = read("Cargo.toml")?;
    let rust = Regex::new(r#"rust-version = "([\d.]+)""#)?;
    let rust = rust.captures(&workspace).context("a version of Rust")?;
    let binary = "/usr/local/bin/muster";
    for line in [
        format!("USER {user}:{user}\n"),
        format!("ARG VERSION={}\n", env!("CARGO_PKG_VERSION")),
        format!("library/rust:{}-", &rust[1]),
        format!("COPY --from=build /out/muster {binary}\n"),
        format!("ENTRYPOINT [\"{binary}\"]\n"),
    ] {
        ensure!(recipe.contains(&line), "the recipe lacks {line:?}");
    }
    // The ports are those of the chart's pods.
    let exposed = Regex::new(r"(?m)^EXPOSE (.*)$")?;
    let exposed = exposed.captures(&recipe).context("ports")?;
    for (role, port) in [
        ("storage", "7443"),
        ("operator", "9443"),
        ("worker", "8080"),
    ] {
        let template = read(&format!("charts/muster/templates/{role}.yaml"))?;
        ensure!(
            template.contains(&format!("containerPort: {port}")),
            "{role}: {port}"
        );
        ensure!(exposed[1].split(' ').any(|known| known == port), "{port}");
    }
    Ok(())
}
