package main

import "runtime/debug"

// module is a module that is linked into a binary. Sum is its checksum in the form of go.sum, which
// is not a file's.
type module struct{ path, version, purl, sum string }

// modules returns the standard library and the modules of a binary.
func modules(info *debug.BuildInfo) []module {
	version := info.GoVersion[len("go"):]
	all := []module{{"std", version, "pkg:golang/std@" + version, ""}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		all = append(
			all, module{dep.Path, dep.Version, "pkg:golang/" + dep.Path + "@" + dep.Version, dep.Sum},
		)
	}
	return all
}

// bill is a CycloneDX document.
type bill struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// cycloneDX returns the bill of materials of a binary of a version, made at a time.
func cycloneDX(info *debug.BuildInfo, version, at string) bill {
	name := info.Main.Path
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	b.Metadata = metadata{at, component{
		Type: "application", Ref: name + "@" + version, Name: name, Version: version,
	}}
	for _, m := range modules(info) {
		c := component{
			Type: "library", Ref: m.path + "@" + m.version, Name: m.path, Version: m.version,
			PURL: m.purl,
		}
		if m.sum != "" {
			c.Properties = []property{{"go:sum", m.sum}}
		}
		b.Components = append(b.Components, c)
	}
	return b
}

// spdxDocument is an SPDX document.
type spdxDocument struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string     `json:"SPDXID"`
	Name      string     `json:"name"`
	Version   string     `json:"versionInfo"`
	Location  string     `json:"downloadLocation"`
	Analyzed  bool       `json:"filesAnalyzed"`
	Concluded string     `json:"licenseConcluded"`
	Declared  string     `json:"licenseDeclared"`
	Copyright string     `json:"copyrightText"`
	Refs      []external `json:"externalRefs,omitempty"`
}

type external struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION" // the licences are in the release's file "copyright"

// spdx returns the bill of materials of a binary of a version, made at a time.
func spdx(info *debug.BuildInfo, version, at string) spdxDocument {
	name := info.Main.Path
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:      name + "-" + version,
		Namespace: "https://spdx.org/spdxdocs/" + name + "-" + version + "-" + target(info),
		Creation:  creation{at, []string{"Tool: " + name + "-release"}},
		Packages: []spdxPackage{{
			ID: "SPDXRef-" + name, Name: name, Version: version, Location: unknown,
			Concluded: "Apache-2.0", Declared: "Apache-2.0", Copyright: unknown,
		}},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-" + name}},
	}
	for _, m := range modules(info) {
		id := "SPDXRef-" + identifier(m.path+"-"+m.version)
		d.Packages = append(d.Packages, spdxPackage{
			ID: id, Name: m.path, Version: m.version, Location: unknown,
			Concluded: unknown, Declared: unknown, Copyright: unknown,
			Refs: []external{{"PACKAGE-MANAGER", "purl", m.purl}},
		})
		d.Relationships = append(
			d.Relationships, relationship{"SPDXRef-" + name, "DEPENDS_ON", id},
		)
	}
	return d
}

// target returns the platform of a binary, such as linux-amd64.
func target(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	return settings["GOOS"] + "-" + settings["GOARCH"]
}

// identifier returns text with "-" in place of what an SPDX identifier cannot have.
func identifier(text string) string {
	id := []byte(text)
	for i, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-':
		default:
			id[i] = '-'
		}
	}
	return string(id)
}
