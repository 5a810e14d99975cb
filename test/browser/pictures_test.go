package browser

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"hubcloud/streams/streamstest"
	"hubcloud/test/nodejs"
)

var update = flag.Bool("update", false, "write the pictures that TestPictures compares pages with")

const (
	// Pictures are stored at a half of their size. Pixels are different if a color differs by more
	// than colorTolerance of 255, and pages if more than pixelTolerance of their pixels are: how
	// letters are smoothed differs between machines.
	pictureScale   = 2
	colorTolerance = 40
	pixelTolerance = 0.002
)

// TestPictures compares the page that shows all components in all states with its pictures in
// testdata, in a font that is installed for it. `go test ./test/browser -run TestPictures -update` takes the
// pictures anew.
func TestPictures(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(busyOrg{quiet: true}.serve())
	t.Cleanup(server.Close)
	b := open(t, server.URL)
	font, err := os.ReadFile(filepath.Join(
		nodejs.Install(t, "npm", "browser"),
		"node_modules", "@fontsource", "inter", "files", "inter-latin-400-normal.woff2",
	))
	streamstest.Must(t, err)
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 390}, {"dark", 390}} {
		name := fmt.Sprintf("design-%s-%d", look.scheme, look.width)
		b.do("emulate", chromedp.EmulateViewport(look.width, 900), prefer(look.scheme))
		b.goTo("/portal/org/design")
		// No request: the pages' policy allows no fonts.
		eval[bool](b, fmt.Sprintf(`(async () => {
				const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0));
				document.fonts.add(await new FontFace("Pinned", bytes).load());
				for (const name of ["text", "code"])
					document.documentElement.style.setProperty("--font-" + name, "Pinned");
				document.querySelectorAll("time").forEach((time) => time.remove());
				document.activeElement?.blur();
				await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
				return true;
			})()`, base64.StdEncoding.EncodeToString(font)))
		b.compare(name)
	}
}

// compare compares the page with its picture.
func (b *tab) compare(name string) {
	b.t.Helper()
	taken, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	streamstest.Must(b.t, err)
	decoded, err := png.Decode(bytes.NewReader(taken))
	streamstest.Must(b.t, err)
	got := halved(decoded)
	reference := filepath.Join("testdata", name+".png")
	if *update {
		writePicture(b.t, reference, got)
		return
	}
	file, err := os.ReadFile(reference)
	streamstest.Must(b.t, err)
	want, err := png.Decode(bytes.NewReader(file))
	streamstest.Must(b.t, err)
	bounds := got.Bounds()
	different := 0
	if bounds == want.Bounds() {
		for y := range bounds.Dy() {
			for x := range bounds.Dx() {
				if differs(got.At(x, y), want.At(x, y)) {
					different++
				}
			}
		}
	}
	share := float64(different) / float64(bounds.Dx()*bounds.Dy())
	if bounds != want.Bounds() || share > pixelTolerance {
		seen := filepath.Join(artifacts, "pictures", name+".png")
		writePicture(b.t, seen, got)
		b.t.Errorf(
			"%s, %v: %.2f %% of the pixels differ from %s, %v; the page is in %s",
			name, bounds.Max, share*100, reference, want.Bounds().Max, seen,
		)
	}
}

// halved returns a picture in which each pixel is the mean of pictureScale by pictureScale pixels,
// with 32 shades of each color, so that it is small.
func halved(full image.Image) *image.RGBA {
	bounds := full.Bounds()
	small := image.NewRGBA(image.Rect(0, 0, bounds.Dx()/pictureScale, bounds.Dy()/pictureScale))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			var sum [3]uint32
			for i := range pictureScale * pictureScale {
				r, g, b, _ := full.At(x*pictureScale+i%pictureScale, y*pictureScale+i/pictureScale).RGBA()
				for c, v := range [3]uint32{r, g, b} {
					sum[c] += v >> 8
				}
			}
			for c := range sum {
				sum[c] = sum[c] / (pictureScale * pictureScale) &^ 7
			}
			small.SetRGBA(x, y, color.RGBA{uint8(sum[0]), uint8(sum[1]), uint8(sum[2]), 255})
		}
	}
	return small
}

func differs(a, b color.Color) bool {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	for _, pair := range [][2]uint32{{ar, br}, {ag, bg}, {ab, bb}} {
		if max(pair[0], pair[1])-min(pair[0], pair[1]) > colorTolerance<<8 {
			return true
		}
	}
	return false
}

func writePicture(t *testing.T, path string, picture image.Image) {
	t.Helper()
	var encoded bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&encoded, picture)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, encoded.Bytes(), 0o644)
	}
	streamstest.Must(t, err)
}
