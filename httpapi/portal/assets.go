package portal

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets are the files that pages need.
type assets struct {
	named map[string]string // the name in the address, by the file's
	files map[string]asset  // by the name in the address
}

type asset struct {
	contentType string
	content     []byte
}

// importedModule finds what a script imports: a file beside it.
var importedModule = regexp.MustCompile(`from "\./([a-z]+\.js)"`)

// loadAssets names each file after its content, so that a browser may keep it for good: `style.css` becomes `style.1f3a….css`.
func loadAssets() assets {
	a := assets{named: map[string]string{}, files: map[string]asset{}}
	entries, err := assetFiles.ReadDir("assets")
	for _, entry := range entries {
		if err == nil {
			_, err = a.load(entry.Name())
		}
	}
	if err != nil {
		panic(fmt.Sprintf("portal: the files in the binary cannot be read: %v", err))
	}
	return a
}

// load takes a file and gives the name that it gets. A script imports others by theirs, so those come first; they import nobody in a circle.
func (a assets) load(file string) (string, error) {
	if name, ok := a.named[file]; ok {
		return name, nil
	}
	content, err := assetFiles.ReadFile("assets/" + file)
	if err != nil {
		return "", err
	}
	extension := path.Ext(file)
	if extension == ".js" {
		content = importedModule.ReplaceAllFunc(content, func(match []byte) []byte {
			name, failed := a.load(string(importedModule.FindSubmatch(match)[1]))
			if failed != nil {
				err = failed
			}
			return []byte(`from "./` + name + `"`)
		})
	}
	sum := sha256.Sum256(content)
	name := strings.TrimSuffix(file, extension) + "." + hex.EncodeToString(sum[:6]) + extension
	a.named[file] = name
	a.files[name] = asset{mime.TypeByExtension(extension), content}
	return name, err
}

// name gives the name under which a page asks for a file.
func (a assets) name(file string) (string, error) {
	name, ok := a.named[file]
	if !ok {
		return "", fmt.Errorf("there is no file %q", file)
	}
	return name, nil
}

// serve answers with a file.
func (a assets) serve(w http.ResponseWriter, r *http.Request, name string) {
	file, ok := a.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", file.contentType)
	header.Set("Content-Length", strconv.Itoa(len(file.content)))
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodHead {
		_, _ = w.Write(file.content) // a visitor who left is the visitor's affair
	}
}
