package httpapi

// page hands a request to the portal, which answers people with pages. Only what goes wrong before it gets there has the error body.
func (a *api) page(x *exchange) error {
	if a.Portal == nil {
		return noSuchPath(x)
	}
	a.Portal.ServeHTTP(x, x.r.WithContext(x.ctx))
	if x.status == 0 {
		return x.ctx.Err() // the visitor has gone
	}
	return nil
}
