package portal

import (
	"html/template"
	"net/http"
)

// sideCookie remembers that a person has collapsed the side bar. A script sets it; it is no secret.
const sideCookie = "hubcloud_side"

// section is an entry of the side bar, with its pages.
type section struct {
	// Name is the Section of the pages' layouts, and Icon one of icons.
	Name, Label, Icon string
	// Pages are the section's pages. The first opens with the entry; all are tabs if there are more.
	Pages []sectionPage
}

// sectionPage is one page of a section. Its address is relative to the organization's, so that one
// beginning with "../" is outside the portal.
type sectionPage struct{ Address, Label string }

// sections are the entries of the side bar, in order.
var sections = []section{
	{"overview", "Overview", "overview", []sectionPage{{"", "Overview"}}},
	{"sites", "Sites", "site", []sectionPage{{"sites", "Sites"}}},
	{"devices", "Devices", "device", []sectionPage{{"devices", "Devices"}}},
	{"events", "Events", "events", []sectionPage{
		{"activity", "Activity"}, {"activity/commands", "Commands"},
	}},
	{"people", "People", "people", []sectionPage{{"members", "People"}}},
	{"developers", "Developers", "developers", []sectionPage{
		{"keys", "API keys"}, {"readers", "Readers"}, {"../../v1/reference", "API reference"},
	}},
	{"settings", "Settings", "settings", []sectionPage{
		{"settings", "General"}, {"notifications", "Notifications"},
	}},
}

// navLink is a link of the side bar or a tab.
type navLink struct {
	Address, Label, Icon string
	Current, Alarms      bool
}

// Navigation returns the links of the side bar.
func (l Layout) Navigation() []navLink {
	links := make([]navLink, len(sections))
	for i, s := range sections {
		links[i] = navLink{
			Address: l.inOrg(s.Pages[0].Address), Label: s.Label, Icon: s.Icon,
			Current: s.Name == l.Section, Alarms: i == 0,
		}
	}
	return links
}

// Tabs returns links to the pages of the section; nil if it has only one, or the page is none of
// them.
func (l Layout) Tabs() (tabs []navLink) {
	for _, s := range sections {
		if s.Name != l.Section || len(s.Pages) < 2 {
			continue
		}
		for _, page := range s.Pages {
			tabs = append(tabs, navLink{
				Address: l.inOrg(page.Address), Label: page.Label, Current: page.Address == l.page,
			})
		}
	}
	return tabs
}

// inOrg returns the address of a page from the current one.
func (l Layout) inOrg(page string) string {
	if page == "" {
		return l.Root + l.Member.OrgID
	}
	return l.Root + l.Member.OrgID + "/" + page
}

// Initial is the first letter of the person's address.
func (l Layout) Initial() string {
	for _, r := range l.Email {
		return string(r)
	}
	return ""
}

// sideCollapsed reports whether the person has collapsed the side bar.
func sideCollapsed(r *http.Request) bool {
	cookie, err := r.Cookie(sideCookie)
	return err == nil && cookie.Value == "collapsed"
}

// icons are the paths of icons, which are 20 units wide and high and drawn as lines.
var icons = map[string]string{
	"overview": "M3 3h6v7H3zM11.5 3h5.5v4h-5.5zM11.5 9.5h5.5V17h-5.5zM3 12.5h6V17H3z",
	"site":     "M4 17V4.5h7V17M11 8.5h5V17M2.5 17h15M6.5 7.5h2M6.5 10.5h2M6.5 13.5h2",
	"device":   "M6 2.5h8a1 1 0 0 1 1 1v13a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1v-13a1 1 0 0 1 1-1zM8.5 14.5h3",
	"events":   "M2.5 10H6l2.5-6 3.5 12 2.5-6h3",
	"people": "M7.5 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6z" +
		"M2.5 16.5c.4-3 2.3-4.5 5-4.5s4.6 1.5 5 4.5M13 4.3a3 3 0 0 1 0 5.4M15 12.4c1.5.7 2.3 2 2.5 4.1",
	"developers": "M6.5 6 2.5 10l4 4M13.5 6l4 4-4 4M11.5 4l-3 12",
	"settings":   "M3 6h7M14 6h3M12 4v4M3 14h3M10 14h7M8 12v4",
	"help": "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15z" +
		"M7.8 8a2.2 2.2 0 1 1 3.3 1.9c-.7.4-1.1.9-1.1 1.6M10 14v.3",
	"menu":     "M3 5.5h14M3 10h14M3 14.5h14",
	"collapse": "M3.5 3.5h13v13h-13zM8 3.5v13M13 8l-2 2 2 2",
	"out":      "M8 3.5H4v13h4M8.5 10H17M14 7l3 3-3 3",
	"switch":   "m7 7.5 3-3 3 3M7 12.5l3 3 3-3",
	"search":   "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM13 13l4 4",
}

// icon returns an icon. It is hidden from screen readers: words stand beside it.
func icon(name string) template.HTML {
	// Safe: the paths are constants.
	return template.HTML(
		`<svg class="line" viewBox="0 0 20 20" aria-hidden="true"><path d="` + icons[name] +
			`"/></svg>`,
	)
}
