package httpapi

import (
	"strconv"

	"hubcloud/domain"
)

// onHub returns the handler of a route about a hub of the caller's.
func (a *api) onHub(handle func(*request, domain.HubID) error) func(*request) error {
	return func(req *request) error {
		hub, err := a.ownHub(req)
		if err != nil {
			return err
		}
		return handle(req, hub)
	}
}

// onDevice returns the handler of a route about a device of a hub of the caller's. An id that is not
// a canonical decimal number is not_found.
func (a *api) onDevice(handle func(*request, domain.HubID, int64) error) func(*request) error {
	return a.onHub(func(req *request, hub domain.HubID) error {
		text := req.http.PathValue("device_id")
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(id, 10) != text {
			return domain.Errorf(domain.CodeNotFound, "no such device")
		}
		return handle(req, hub, id)
	})
}

// onID returns the handler of a route about what the parameter of the path identifies. An id that is
// not a UUID is notFound.
func onID(
	parameter string, notFound func() *domain.Error, handle func(req *request, id string) error,
) func(*request) error {
	return func(req *request) error {
		id := req.http.PathValue(parameter)
		if !domain.IsUUID(id) {
			return notFound()
		}
		return handle(req, id)
	}
}
