//! Observations in any file: the answer of `GET /v1/report`, or a log that an agent's lines are in, whatever is around them.

use serde_json::Value;

use super::Observation;

/// The field that has it, of a log line and of the answer.
pub const FIELD: &str = "observation";

/// Every observation that a text has, in its order.
pub fn observations(text: &str) -> Vec<Observation> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => in_value(value).into_iter().collect(),
        Err(_) => text.lines().filter_map(in_line).collect(),
    }
}

fn in_line(line: &str) -> Option<Observation> {
    let json = line.find('{').and_then(|at| line.get(at..));
    let first = json.and_then(|json| serde_json::Deserializer::from_str(json).into_iter::<Value>().next());
    if let Some(found) = first.and_then(Result::ok).and_then(in_value) {
        return Some(found);
    }
    // Text: `observation="{\"format\":…}"`.
    let (_, rest) = line.split_once(&format!("{FIELD}=\""))?;
    let quoted = format!("\"{rest}");
    let text = serde_json::Deserializer::from_str(&quoted).into_iter::<String>().next()?.ok()?;
    serde_json::from_str(&text).ok()
}

fn in_value(value: Value) -> Option<Observation> {
    let Value::Object(mut fields) = value else { return None };
    match fields.remove(FIELD) {
        Some(Value::String(text)) => serde_json::from_str(&text).ok(),
        Some(Value::Object(whole)) => serde_json::from_value(Value::Object(whole)).ok(),
        _ => {
            // Docker's `log`, others' `message`: the line as it was.
            let mut lines = ["log", "message", "line"].into_iter().filter_map(|name| fields.remove(name));
            lines.find_map(|line| in_line(line.as_str()?))
        }
    }
}
