//! What is wrong with an input, where it stands, and what would be right.
//!
//! Checks collect as many [`Diagnostic`]s as they can and go on; nothing here stops at the first. A [`Rejected`]
//! holds them with the texts they point into, and prints them with file, line, column and the line itself.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// One text that values come from: a file, or an override from the command line.
#[derive(Clone, Debug)]
pub struct Source {
    /// How the text is called in messages: a path, or `--set`.
    pub name: String,
    /// The whole text; spans point into it.
    pub text: String,
}

/// Where something stands: which source, and which bytes of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index into the sources.
    pub source: usize,
    /// Byte range in that source's text.
    pub span: Range<usize>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The scenario cannot run.
    Error,
    /// It can run, but probably not as meant.
    Warning,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What is wrong, in one line.
    pub message: String,
    /// What was found there; shown beside the marked text.
    pub label: String,
    /// What to write instead.
    pub help: String,
}

/// An input that was rejected, with every reason found.
#[derive(Debug)]
pub struct Rejected {
    /// The texts that the diagnostics point into.
    pub sources: Vec<Source>,
    /// At least one of them an error.
    pub diagnostics: Vec<Diagnostic>,
}

impl std::error::Error for Rejected {}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(&self.sources, &self.diagnostics))?;
        let errors = self
            .diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .count();
        let plural = if errors == 1 { "" } else { "s" };
        write!(f, "{errors} error{plural} in {}", self.sources[0].name)
    }
}

/// The diagnostics as text, one block each, in the order of their places.
pub fn render(sources: &[Source], diagnostics: &[Diagnostic]) -> String {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|d| (d.place.source, d.place.span.start));
    let mut out = String::new();
    for diagnostic in sorted {
        let source = &sources[diagnostic.place.source];
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let Range { start, end } = diagnostic.place.span.clone();
        // A table that spans many lines is marked by its first line only.
        let end = start + source.text[start..end].lines().next().map_or(0, str::len);
        let snippet = Snippet::source(&source.text).path(&source.name).annotation(
            AnnotationKind::Primary
                .span(start..end)
                .label(&diagnostic.label),
        );
        let group: Group<'_> = level
            .primary_title(&diagnostic.message)
            .element(snippet)
            .element(Level::HELP.message(&diagnostic.help));
        out.push_str(&Renderer::plain().render(&[group]));
        out.push_str("\n\n");
    }
    out
}

/// The candidate nearest to `word`, if near enough to be what was meant (Levenshtein distance at most a third of it).
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (distance(&word.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(d, c)| *d <= (c.len().max(word.len()) / 3).max(1))
        .min()
        .map(|(_, c)| c)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_suggested_and_far_ones_not() {
        assert_eq!(nearest("flor", ["floor", "ceiling"]), Some("floor"));
        assert_eq!(nearest("ceilling", ["floor", "ceiling"]), Some("ceiling"));
        assert_eq!(nearest("zebra", ["floor", "ceiling"]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
