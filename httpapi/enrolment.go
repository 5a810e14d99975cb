package httpapi

import (
	"net/http"

	"hubcloud/hubbridge/protocol"
)

// issueCertificate is POST /link/v1/certificates of the hub link. Hubs are other people's and newer
// than this code one day: fields that it does not know are ignored.
func (a *api) issueCertificate(x *exchange) error {
	body, err := x.readOpenObject()
	if err != nil {
		return err
	}
	var req protocol.CertificateRequest
	if req.Serial, err = body.text("serial"); err != nil {
		return err
	}
	if req.Secret, err = body.text("secret"); err != nil {
		return err
	}
	if req.CSR, err = body.text("csr"); err != nil {
		return err
	}
	certificate, err := a.Enrolment.Issue(x.ctx, req)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusCreated, certificate)
}
