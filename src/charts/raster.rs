//! A figure as PNG, with a font that the program brings along, so that it is the same picture on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::ChartError;

/// DejaVu Sans with the letters of Europe, digits and signs; its licence lies beside it.
const FONT: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Pixels of the picture for one of the figure.
const SCALE: f32 = 2.0;

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

/// A figure of [`super::Figure::svg`] as PNG, two pixels for each of its own.
///
/// # Errors
/// [`ChartError`] where the text is no SVG, or has no size.
pub fn png(svg: &str) -> Result<Vec<u8>, ChartError> {
    let options = Options {
        font_family: FAMILY.into(),
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(ChartError::new)?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let empty = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut picture = empty.ok_or_else(|| ChartError("it has no size".into()))?;
    resvg::render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut picture.as_mut(),
    );
    picture.encode_png().map_err(ChartError::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"<svg width="60" height="30" xmlns="http://www.w3.org/2000/svg"><rect width="60" height="30" fill="white"/><text x="2" y="20" font-family="sans-serif" font-size="12" fill="black">≤ µ é</text></svg>"#;

    #[test]
    fn a_picture_has_its_signature_twice_the_size_and_text() {
        let bytes = png(TEXT).unwrap();
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((number(16), number(20)), (120, 60));
        assert_eq!(bytes, png(TEXT).unwrap());
        let bare = png(&TEXT.replace("≤ µ é", "")).unwrap();
        assert_ne!(bytes, bare, "the text is drawn");
    }

    #[test]
    fn what_is_no_svg_is_an_error() {
        assert!(png("<html/>").is_err() && png("").is_err());
    }
}
