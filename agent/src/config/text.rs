//! YAML, the way everything in the configuration is read: files, and the values of variables and flags.

use serde_json::Value;

/// Reads a whole document.
///
/// # Errors
/// What is wrong with it, with its place.
pub(super) fn document(text: &str) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        // `off` is a log level and not a boolean.
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Reads the value of a variable or a flag. What is no YAML, such as `[::]:19480`, is taken as the text that it is.
pub(super) fn read(text: &str) -> Value {
    document(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_values_as_yaml_and_the_rest_as_text() {
        for (text, value) in [
            ("2s", json!("2s")),
            ("[80, 443]", json!([80, 443])),
            ("80,443", json!("80,443")),
            ("true", json!(true)),
            ("off", json!("off")),
            ("null", json!(null)),
            ("", json!(null)),
            ("[::]:19480", json!("[::]:19480")),
            ("127.0.0.1:19480", json!("127.0.0.1:19480")),
            ("info,lastsyn=debug", json!("info,lastsyn=debug")),
            ("[80, 443", json!("[80, 443")),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
    }
}
