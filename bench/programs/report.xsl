<?xml version="1.0"?>
<!-- SPDX-License-Identifier: MIT -->
<!-- Records as a page: sorted, filtered, grouped by the first letters of their names, with sums. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" indent="yes"/>
  <xsl:key name="letters" match="record" use="substring(name, 1, 3)"/>
  <xsl:template match="/records">
    <xsl:if test="count(record/tag) != 4 * count(record)"><xsl:message terminate="yes">tags were lost</xsl:message></xsl:if>
    <html><body>
      <xsl:for-each select="record[generate-id() = generate-id(key('letters', substring(name, 1, 3))[1])]">
        <xsl:sort select="name"/>
        <h2><xsl:value-of select="substring(name, 1, 3)"/></h2>
        <table>
          <xsl:apply-templates select="key('letters', substring(name, 1, 3))">
            <xsl:sort select="sum(score)" data-type="number" order="descending"/>
            <xsl:sort select="note"/>
          </xsl:apply-templates>
        </table>
      </xsl:for-each>
    </body></html>
  </xsl:template>
  <xsl:template match="record">
    <tr>
      <td><xsl:value-of select="concat(@id, ' ', translate(name, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'))"/></td>
      <td><xsl:value-of select="format-number(sum(score), '0.000')"/></td>
      <xsl:for-each select="tag"><xsl:sort select="@name"/><td><xsl:value-of select="concat(@name, '=', .)"/></td></xsl:for-each>
      <td><xsl:value-of select="normalize-space(note)"/></td>
    </tr>
  </xsl:template>
</xsl:stylesheet>
