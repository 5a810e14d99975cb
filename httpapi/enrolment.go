package httpapi

import (
	"net/http"

	"hubcloud/hubbridge/protocol"
)

// issueCertificate is POST /link/v1/certificates of the hub protocol. It ignores unknown fields, so
// that newer hubs can send more.
func (a *api) issueCertificate(req *request) error {
	body, err := req.readOpenObject()
	if err != nil {
		return err
	}
	var wanted protocol.CertificateRequest
	if wanted.Serial, err = body.stringField("serial"); err != nil {
		return err
	}
	if wanted.Secret, err = body.stringField("secret"); err != nil {
		return err
	}
	if wanted.CSR, err = body.stringField("csr"); err != nil {
		return err
	}
	certificate, err := a.Enrolment.Issue(req.ctx, wanted)
	if err != nil {
		return err
	}
	return req.writeJSON(http.StatusCreated, certificate)
}
