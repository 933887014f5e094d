//! The workflows of `.github/workflows` do what anybody can do at home: they call this program's verbs. Tests hold them to it.

use std::{fs, path::PathBuf};

use clap::Parser as _;
use serde_json::Value;

use crate::{Arguments, workspace};

/// What a machine needs before it can call a verb.
const SETTING_UP: [&str; 3] =
    ["git config --global --add safe.directory ", "rustup component add ", "rustup toolchain install nightly "];

fn workflows() -> Vec<(PathBuf, Value)> {
    let directory = workspace::root().unwrap().join(".github/workflows");
    let files = workspace::files(&directory).unwrap().into_iter();
    files.map(|file| (file.clone(), serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap())).collect()
}

/// Every line of the commands of every step.
fn commands(workflow: &Value) -> Vec<&str> {
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.flat_map(|job| job["steps"].as_array().unwrap());
    steps.filter_map(|step| step["run"].as_str()).flat_map(str::lines).collect()
}

#[test]
fn every_command_of_a_workflow_is_a_verb_with_arguments_that_it_takes() {
    let workflows = workflows();
    let names: Vec<_> = workflows.iter().map(|(file, _)| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["release.yml", "test.yml"]);
    for (file, workflow) in &workflows {
        let mut verbs = 0;
        for command in commands(workflow) {
            if let Some(arguments) = command.strip_prefix("cargo xtask ") {
                let words = ["cargo xtask"].into_iter().chain(arguments.split_ascii_whitespace());
                if let Err(error) = Arguments::try_parse_from(words) {
                    panic!("{}: `{command}`: {error}", file.display());
                }
                verbs += 1;
            } else {
                let is_setting_up = SETTING_UP.iter().any(|start| command.starts_with(start));
                assert!(is_setting_up, "{}: `{command}` is no verb of cargo xtask", file.display());
            }
        }
        assert!(verbs > 0, "{} calls no verb", file.display());
    }
    // It does look.
    assert!(Arguments::try_parse_from(["cargo xtask", "distribute"]).is_err());
    assert!(Arguments::try_parse_from(["cargo xtask", "dist", "--thrice"]).is_err());
}

#[test]
fn workflows_may_read_and_no_more_and_every_job_has_an_end() {
    for (file, workflow) in workflows() {
        let name = file.display();
        assert_eq!(workflow["permissions"], serde_json::json!({"contents": "read"}), "{name}");
        for job in workflow["jobs"].as_object().unwrap().values() {
            assert!(job["timeout-minutes"].as_u64().is_some(), "{name}: {job:#}");
        }
    }
}
