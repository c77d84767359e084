//! Content negotiation by quality values (RFC 9110 §12).

use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, HeaderName};

/// Quality value in thousandths. 0 means not acceptable.
type Quality = u16;

/// Whether the client prefers HTML to JSON. False if it accepts both equally, as with `*/*`.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    media_type(headers, "text", "html") > media_type(headers, "application", "json")
}

/// Whether the client prefers the `OpenMetrics` text format to the older text format of Prometheus.
pub(crate) fn prefers_openmetrics(headers: &HeaderMap) -> bool {
    media_type(headers, "application", "openmetrics-text") > media_type(headers, "text", "plain")
}

/// Quality of a media type, taken from the most specific range that matches it.
fn media_type(headers: &HeaderMap, of_type: &str, subtype: &str) -> Quality {
    let specificity = |range: &str| {
        let (wanted_type, wanted_subtype) = range.split_once('/')?;
        let is = |wanted: &str, name: &str| wanted.eq_ignore_ascii_case(name);
        match (wanted_type, wanted_subtype) {
            ("*", "*") => Some(0_u8),
            (wanted, "*") if is(wanted, of_type) => Some(1),
            (wanted, exact) if is(wanted, of_type) && is(exact, subtype) => Some(2),
            _ => None,
        }
    };
    let ranges = alternatives(headers, &ACCEPT);
    let fitting = ranges.filter_map(|(range, quality)| Some((specificity(range)?, quality)));
    fitting.max().map_or(0, |(_, quality)| quality)
}

/// The client's preferred encoding among `encodings`, the first on a tie. `None` if it accepts none of the
/// encodings or prefers an unencoded response.
pub(crate) fn preferred_encoding(headers: &HeaderMap, encodings: &[&'static str]) -> Option<&'static str> {
    let named = |name: &str| {
        let alternatives = alternatives(headers, &ACCEPT_ENCODING);
        alternatives.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, quality)| quality).max()
    };
    let any = named("*").unwrap_or(0);
    let plain = named("identity").unwrap_or(0);
    let wanted = encodings.iter().map(|encoding| (named(encoding).unwrap_or(any), *encoding));
    let wanted = wanted.filter(|(quality, _)| *quality > 0 && *quality >= plain);
    // On a tie, `max_by_key` returns the last.
    wanted.rev().max_by_key(|(quality, _)| *quality).map(|(_, encoding)| encoding)
}

/// Items of a header with their qualities. Malformed items are skipped.
fn alternatives<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = (&'a str, Quality)> {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).filter_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let what = parts.next().filter(|what| !what.is_empty())?;
        let mut weights = parts.filter_map(|parameter| parameter.split_once('='));
        let weight = weights.find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        Some((what, weight.map_or(Some(1000), |(_, text)| quality(text.trim()))?))
    })
}

/// Parses a quality value: `0.25` is 250.
fn quality(text: &str) -> Option<Quality> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths: Quality = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn browsers_prefer_html_and_clients_of_the_api_do_not() {
        let html = |values: &[&str]| prefers_html(&headers(&ACCEPT, values));
        assert!(html(&["text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"]));
        assert!(html(&["text/html"]) && html(&["TEXT/HTML; charset=utf-8"]) && html(&["text/*"]));
        assert!(html(&["application/json;q=0.5", "text/html;q=0.501"]), "in two lines");
        assert!(html(&["*/*, application/json;q=0"]), "anything but JSON");
        for other in [
            "",
            "*/*",
            "application/json",
            "application/json, text/plain, */*",
            "text/html, application/json",
            "text/html;q=0.4, application/*;q=0.6",
            "text/*;q=0.9, text/html;q=0.1, */*;q=0.5",
            "text/html;q=0",
            "text/html;q=1.5",
            "text/html;q=x",
            "text",
            ",;,/;q=,text/html;q=0.0001",
        ] {
            assert!(!html(&[other]), "{other:?}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn prometheus_prefers_openmetrics_and_who_does_not_say_so_does_not() {
        let openmetrics = |values: &[&str]| prefers_openmetrics(&headers(&ACCEPT, values));
        assert!(openmetrics(&["application/openmetrics-text;version=1.0.0;q=0.5,\
            application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"]));
        assert!(openmetrics(&["application/openmetrics-text", "text/plain;q=0.9"]));
        for other in [
            "*/*",
            "text/plain",
            "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5",
            "application/openmetrics-text;q=0",
            "application/json",
            "",
        ] {
            assert!(!openmetrics(&[other]), "{other:?}");
        }
        assert!(!prefers_openmetrics(&HeaderMap::new()));
    }

    #[test]
    fn an_encoding_is_chosen_by_its_quality_and_the_first_of_equal_ones() {
        let chosen =
            |value: &str| preferred_encoding(&headers(&ACCEPT_ENCODING, &[value]), &["zstd", "gzip"]);
        assert_eq!(chosen("gzip, deflate, br, zstd"), Some("zstd"));
        assert_eq!(chosen("gzip, deflate"), Some("gzip"));
        assert_eq!(chosen("zstd;q=0.5, GZIP;q=0.8"), Some("gzip"));
        assert_eq!(chosen("*"), Some("zstd"));
        assert_eq!(chosen("*, zstd;q=0"), Some("gzip"));
        assert_eq!(chosen("identity, gzip"), Some("gzip"));
        for none in ["", "br", "gzip;q=0", "*;q=0", "identity, gzip;q=0.5", "identity;q=0"] {
            assert_eq!(chosen(none), None, "{none:?}");
        }
    }
}
