package upgrade

import (
	"encoding/json"
	"reflect"
	"testing"

	"hubcloud/test/harness"
)

// seen is what a client sees of an installation.
type seen struct {
	// Key is an API key of the only organization, with all scopes.
	Key string `json:"key"`
	// Resources has answers of the API, by path. Events has the events of each hub, oldest first.
	Resources map[string]any   `json:"resources"`
	Events    map[string][]any `json:"events"`
}

// look reads everything with a key.
func look(t *testing.T, service *harness.Service, key string, hubs []string) seen {
	t.Helper()
	client := harness.NewClient(t, service.Base(), key)
	s := seen{key, map[string]any{}, map[string][]any{}}
	paths := []string{"/sites", "/hubs", "/members"}
	for _, hub := range hubs {
		paths = append(paths, "/hubs/"+hub)
		s.Events[hub] = eventsAfter(client, hub, "")
	}
	for _, path := range paths {
		var answer any
		client.Get(path).JSON(t, &answer)
		s.Resources[path] = answer
	}
	return s
}

// eventsAfter returns all events of a hub after a cursor, or all if it is "".
func eventsAfter(client *harness.Client, hub, cursor string) (all []any) {
	client.T.Helper()
	for {
		path := "/hubs/" + hub + "/events?limit=500"
		if cursor != "" {
			path += "&after=" + cursor
		}
		var page struct {
			Data       []any
			NextCursor string `json:"next_cursor"`
			HasMore    bool   `json:"has_more"`
		}
		client.Get(path).JSON(client.T, &page)
		if all = append(all, page.Data...); !page.HasMore {
			return all
		}
		cursor = page.NextCursor
	}
}

// missing returns the path of a value that want has and got lacks or has otherwise, "" if there is
// none. got may have more members.
func missing(want, got any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return path
		}
		for name, value := range want {
			if found := missing(value, object[name], path+"."+name); found != "" {
				return found
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) < len(want) {
			return path
		}
		for i, value := range want {
			if found := missing(value, list[i], path+"[]"); found != "" {
				return found
			}
		}
		return ""
	default:
		if !reflect.DeepEqual(want, got) {
			return path
		}
		return ""
	}
}

// text returns a value as JSON.
func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	harness.Must(t, err)
	return string(encoded)
}
