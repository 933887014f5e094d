//! Colours and rules of the page: light and dark, for a screen and for paper.

use std::fmt::Write;

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Behind everything.
    Ground,
    /// Text: WCAG 2.2 AA asks for a contrast of 4.5 to 1 (success criterion 1.4.3).
    Text,
    /// Parts of graphics: 3 to 1 (1.4.11).
    Shape,
    /// Lines that help, and that nothing depends on.
    Rule,
}

/// Name, use, light, dark.
const PALETTE: [(&str, Use, u32, u32); 10] = [
    ("ground", Use::Ground, 0xff_ffff, 0x12_161c),
    ("text", Use::Text, 0x1b_2430, 0xe6_ebf2),
    ("soft", Use::Text, 0x4a_5668, 0xa9_b4c4),
    ("rule", Use::Rule, 0xd5_dbe4, 0x32_3b48),
    ("holds", Use::Shape, 0xb4_5309, 0xf0_a04b),
    ("attempt", Use::Shape, 0x1d_5fa8, 0x6d_b1f5),
    ("refused", Use::Shape, 0xb4_2318, 0xff_8a7d),
    ("confirmed", Use::Shape, 0x1a_7f4b, 0x4f_c98a),
    ("assumed", Use::Shape, 0x0f_7686, 0x4c_c3d6),
    ("pending", Use::Shape, 0x7a_5ea8, 0xb9_9cf0),
];

const RULES: &str = "\
body{margin:0;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.4rem;margin:.2rem 0}h2,figcaption{font-size:1.1rem;font-weight:600;margin:0 0 .5rem}
.reason{display:inline-block;margin:0;padding:.1rem .6rem;border:2px solid var(--text);border-radius:1rem;font-weight:600}
.note,header p:last-child{color:var(--soft)}
figure,section{margin:2rem 0}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--text);font:12px system-ui,sans-serif}svg .soft{fill:var(--soft)}
svg .rule{stroke:var(--rule)}
.table{max-height:22rem;overflow:auto;margin-top:.5rem;border:1px solid var(--rule)}
table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.15rem .6rem;border-bottom:1px solid var(--rule);vertical-align:top}
th{position:sticky;top:0;background:var(--ground)}
@media print{.table{max-height:none;overflow:visible}figure{break-inside:avoid-page}tr{break-inside:avoid}}
";

/// The style sheet.
pub(super) fn style() -> String {
    let colours = |dark: bool| -> String {
        PALETTE.iter().fold(String::new(), |mut text, (name, _, of_light, of_dark)| {
            let colour = if dark { of_dark } else { of_light };
            // Writing to a string does not fail.
            write!(text, "--{name}:#{colour:06x};").ok();
            text
        })
    };
    // Paper is light, whatever the screen is.
    format!(
        ":root{{{}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{}}}}}\n{RULES}",
        colours(false),
        colours(true)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of sRGB, as WCAG 2.2 defines it.
    fn luminance(colour: u32) -> f64 {
        let part = |shift: u32| {
            let value = f64::from(colour >> shift & 0xff) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0)
    }

    fn contrast(one: u32, other: u32) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn the_contrast_is_computed_as_wcag_does() {
        assert!((contrast(0, 0xff_ffff) - 21.0).abs() < 1e-9);
        assert!((contrast(0x77_7777, 0xff_ffff) - 4.478).abs() < 1e-3);
    }

    #[test]
    fn every_colour_stands_out_from_its_ground() {
        let (_, _, light, dark) = PALETTE[0];
        for (name, purpose, of_light, of_dark) in PALETTE {
            let least = match purpose {
                Use::Text => 4.5,
                Use::Shape => 3.0,
                Use::Ground | Use::Rule => continue,
            };
            for (colour, ground) in [(of_light, light), (of_dark, dark)] {
                let contrast = contrast(colour, ground);
                assert!(contrast >= least, "{name} #{colour:06x} on #{ground:06x}: {contrast:.2}");
            }
        }
    }
}
